// Llama 4: blocks of positions with rotation on three layers of four, all positions without it on the fourth; one
// routed expert, whose weight multiplies what it reads, beside a shared one.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

constexpr std::size_t kBlock = 8192;             // positions that see each other
constexpr std::size_t kFullEvery = 4;            // layers
constexpr std::size_t kExpertsOfMaverick = 128;  // whose q and k are not normalised

}  // namespace

void describe_llama4(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  const std::size_t step = b.keys.count("interleave_moe_layer_step");
  const bool blocks = b.keys.count_or("attention.sliding_window", kBlock) != 0;
  const bool normed = b.keys.count("expert_count") != kExpertsOfMaverick;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope_style = style;
    if (!blocks || (i + 1) % kFullEvery != 0) {
      attention.rope = rope;
      if (normed) attention.q_norm = attention.k_norm = b.bare_norm();
      attention.head_norm_after_rope = true;
      if (blocks) attention.block = b.spec.kv_slots[attention.kv_slot].window = kBlock;
    } else {
      attention.temperature_scale = static_cast<float>(b.keys.number_or("attention.temperature_scale", 0.1));
      attention.temperature_length =
          static_cast<double>(b.keys.positive_count_or("attention.temperature_length", kBlock));
      attention.temperature_offset = 1;
    }
    LayerSpec layer = b.pre_norm_layer(i, attention);
    if ((i + 1) % step == 0) {
      ExpertsSpec experts = b.experts(i, {Gating::kSigmoid, false});
      experts.weigh_input = true;
      b.shared_expert(experts, i, b.shared_width(i, 1));
      Builder::set_experts(layer, std::move(experts));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
