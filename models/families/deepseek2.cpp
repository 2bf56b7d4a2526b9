// Latent attention: DeepSeek 2 and 3 with everything that calls itself `deepseek2` (Kimi K2, GLM-4.7 Flash), PLM,
// MiniCPM 3.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

/// Sizes of one head; newer files give those of the cached latent as key_length and value_length.
struct HeadSizes {
  std::size_t key, value;
};

HeadSizes read_head_sizes(const Builder& b) {
  return {b.keys.count_or("attention.key_length_mla", b.sizes.key_length),
          b.keys.count_or("attention.value_length_mla", b.sizes.value_length)};
}

/// A layer with latent attention and norms before both branches; `scale` is that of the scores.
LayerSpec latent_layer(Builder& b, std::size_t i, std::size_t rope, RopeStyle style, double scale) {
  const HeadSizes head = read_head_sizes(b);
  LayerSpec layer;
  layer.mixer = MixerKind::kLatentAttention;
  layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
  layer.feed_forward_norm = b.norm(Builder::name(i, "ffn_norm"), b.sizes.width);
  AttentionSpec& a = layer.attention;
  LatentSpec& l = layer.latent;
  a.heads = b.sizes.heads[i];
  l.rank = b.keys.count("attention.kv_lora_rank");
  l.n_rot = b.sizes.n_rot;
  if (a.heads == 0 || l.n_rot >= head.key)
    b.keys.refuse(b.keys.full("rope.dimension_count"), fmt::format("{}", l.n_rot),
                  fmt::format("less than the head size {}", head.key));
  l.nope = head.key - l.n_rot;
  l.value_length = head.value;
  if (b.weights.contains(Builder::name(i, "attn_q_a.weight"))) {
    const std::size_t q_rank = b.keys.count("attention.q_lora_rank");
    l.q_a = b.weights.matrix(Builder::name(i, "attn_q_a"), q_rank, b.sizes.width);
    l.q_a_norm = b.norm(Builder::name(i, "attn_q_a_norm"), q_rank);
    l.q = b.weights.matrix(Builder::name(i, "attn_q_b"), a.heads * head.key, q_rank);
  } else {
    l.q = b.weights.matrix(Builder::name(i, "attn_q"), a.heads * head.key, b.sizes.width);
  }
  l.kv_a = b.weights.matrix(Builder::name(i, "attn_kv_a_mqa"), l.rank + l.n_rot, b.sizes.width);
  l.kv_a_norm = b.norm(Builder::name(i, "attn_kv_a_norm"), l.rank);
  if (b.weights.contains(Builder::name(i, "attn_k_b.weight"))) {
    l.k_b = b.weights.bank(Builder::name(i, "attn_k_b"), a.heads, l.rank, l.nope);
    l.v_b = b.weights.bank(Builder::name(i, "attn_v_b"), a.heads, l.value_length, l.rank);
    a.kv_heads = 1;
    a.key_length = l.rank + l.n_rot;
    a.value_length = l.rank;
  } else {
    l.kv_b = b.weights.matrix(Builder::name(i, "attn_kv_b"), a.heads * (l.nope + l.value_length), l.rank);
    a.kv_heads = a.heads;
    a.key_length = head.key;
    a.value_length = head.value;
  }
  a.output = b.weights.matrix(Builder::name(i, "attn_output"), b.sizes.width, a.heads * l.value_length);
  a.rope = rope;
  a.rope_style = style;
  a.scale = static_cast<float>(scale);
  a.kv_slot = b.spec.kv_slots.size();
  b.spec.kv_slots.push_back({a.kv_heads, a.key_length, a.value_length, 0});
  return layer;
}

double usual_scale(const Builder& b) { return 1 / std::sqrt(static_cast<double>(read_head_sizes(b).key)); }

}  // namespace

void describe_deepseek2(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const RopeSettings settings = b.rope_settings();
  const std::size_t rope = b.rope(settings);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  double scale = usual_scale(b);
  if (settings.scaling == RopeScaling::kYarn) {
    // The magnitude of YaRN goes into the scale of scores, once for q and once for k; rotation leaves lengths alone.
    const double stretch = std::log(std::max(1.0, settings.factor));
    const double magnitude = settings.attention_factor * (1 + settings.yarn_log_multiplier * stretch);
    scale *= magnitude * magnitude;
    b.spec.ropes[rope].magnitude = 1;
  }
  // Files without the key: the router of GLM-4.7 Flash, told by its depth, is the only one that is not a softmax.
  constexpr std::size_t kLayersOfFlash = 47;
  const Gating gating = b.sizes.layers == kLayersOfFlash ? Gating::kSigmoid : Gating::kSoftmax;
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer = latent_layer(b, i, rope, style, scale);
    if (mixture && b.has_experts(i)) {
      ExpertsSpec experts = b.experts(i, {gating, false});
      b.shared_expert(experts, i, b.shared_width(i, 0));
      Builder::set_experts(layer, std::move(experts));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

void describe_plm(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer = latent_layer(b, i, rope, style, usual_scale(b));
    layer.feed_forward = b.plain_feed_forward(i, Activation::kRelu2);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

/// The factors on embeddings, branches and logits are not in the file.
void describe_minicpm3(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  b.spec.embedding_scale = 12;
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer = latent_layer(b, i, rope, style, usual_scale(b));
    layer.residual_scale = static_cast<float>(1.4 / std::sqrt(static_cast<double>(b.sizes.layers)));
    layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output(256 / static_cast<double>(b.sizes.width));
}

}  // namespace hk::models
