// Gemma 1, 2 and 3: embeddings times sqrt(width), gated GELU, rotation of halves; from Gemma 2 on norms on both sides
// of each branch and window layers between full ones.
#include <cmath>

#include "models/families/families.h"

namespace hk::models {

namespace {

void embed(Builder& b) {
  b.embedding();
  b.spec.embedding_scale = std::sqrt(static_cast<float>(b.sizes.width));
}

LayerSpec normed_layer(Builder& b, std::size_t i, const AttentionSpec& attention) {
  LayerSpec layer = b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kGelu));
  layer.mixer_post_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
  layer.feed_forward_post_norm = b.norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
  return layer;
}

/// The 27B models divide scores by the root of width / heads instead of the head size; only their depth tells them
/// apart.
void scale_by_width(const Builder& b, AttentionSpec& attention) {
  attention.scale = 1 / std::sqrt(static_cast<float>(b.sizes.width) / static_cast<float>(attention.heads));
}

}  // namespace

void describe_gemma(Builder& b) {
  b.read_sizes(NormKind::kRms);
  embed(b);
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kGelu)));
  }
  b.output();
}

void describe_gemma2(Builder& b) {
  b.read_sizes(NormKind::kRms);
  embed(b);
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count_or("attention.sliding_window", 4096);
  const auto cap = static_cast<float>(b.keys.limit_or("attn_logit_softcapping", 50));
  const std::vector<bool> windowed = b.window_layers(2);
  constexpr std::size_t kLayersOf27B = 46;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    attention.softcap = cap;
    if (b.sizes.layers == kLayersOf27B) scale_by_width(b, attention);
    if (windowed[i]) b.set_window(attention, window);
    b.spec.layers.push_back(normed_layer(b, i, attention));
  }
  b.output();
  b.spec.logit_softcap = static_cast<float>(b.keys.limit_or("final_logit_softcapping", 30));
}

void describe_gemma3(Builder& b) {
  b.read_sizes(NormKind::kRms);
  embed(b);
  const auto [full_rope, local_rope] = b.full_and_local_ropes();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count_or("attention.sliding_window", 0);
  const std::vector<bool> windowed = b.window_layers(6);
  constexpr std::size_t kLayersOf27B = 62;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = windowed[i] ? local_rope : full_rope;
    attention.rope_style = style;
    b.head_norms(attention, i);
    if (b.sizes.layers == kLayersOf27B) scale_by_width(b, attention);
    if (windowed[i]) b.set_window(attention, window);
    b.spec.layers.push_back(normed_layer(b, i, attention));
  }
  b.output();
  b.spec.logit_softcap = static_cast<float>(b.keys.limit_or("final_logit_softcapping", 0));
}

}  // namespace hk::models
