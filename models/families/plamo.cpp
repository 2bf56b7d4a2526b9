// PLaMo 1 (both branches from one norm, kv heads taken in turns) and PLaMo 3 (windows, norms on both sides, fused
// matrices).
#include "models/families/families.h"

namespace hk::models {

void describe_plamo(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    attention.strided_heads = true;
    b.spec.layers.push_back(b.parallel_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output();
}

void describe_plamo3(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const RopeSettings full = b.rope_settings();
  RopeSettings local = full;
  local.base = b.keys.positive_or("rope.freq_base_swa", full.base);
  const std::size_t full_rope = b.rope(full);
  const std::size_t local_rope = b.rope(local);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count_or("attention.sliding_window", 0);
  const std::vector<bool> windowed = b.window_layers(window == 0 ? 0 : 8);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = windowed[i] ? local_rope : full_rope;
    attention.rope_style = style;
    b.head_norms(attention, i);
    if (windowed[i]) b.set_window(attention, window);
    LayerSpec layer = b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu));
    layer.mixer_post_norm = b.bare_named_norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    layer.feed_forward_post_norm = b.bare_named_norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
    b.spec.layers.push_back(layer);
  }
  b.output();
}

}  // namespace hk::models
