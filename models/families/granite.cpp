// Granite 3 and 4, dense and with experts, and MiniCPM: Llama with factors on embeddings, branches and logits, and its
// own attention scale.
#include <cmath>
#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

struct Scales {
  double embedding, residual, logits;  // logits are divided by theirs
};

void describe_scaled(Builder& b, const Scales& usual) {
  b.spec.embedding_scale = static_cast<float>(b.keys.positive_or("embedding_scale", usual.embedding));
  const auto residual = static_cast<float>(b.keys.positive_or("residual_scale", usual.residual));
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    LayerSpec layer = b.pre_norm_layer(i, attention);
    layer.residual_scale = residual;
    if (mixture) {
      ExpertsSpec experts = b.experts(i, {Gating::kSoftmax, true});
      b.shared_expert(experts, i, b.keys.count_or("expert_shared_feed_forward_length", 0));
      Builder::set_experts(layer, std::move(experts));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output(1 / b.keys.positive_or("logit_scale", usual.logits));
}

}  // namespace

void describe_granite(Builder& b) {
  b.read_sizes(NormKind::kRms);
  describe_scaled(b, {1, 1, 1});
}

/// Old files leave the published factors out.
void describe_minicpm(Builder& b) {
  b.read_sizes(NormKind::kRms);
  describe_scaled(b,
                  {12, 1.4 / std::sqrt(static_cast<double>(b.sizes.layers)), static_cast<double>(b.sizes.width) / 256});
}

}  // namespace hk::models
