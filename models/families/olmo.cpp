// OLMo 1 to 3.
#include "models/families/families.h"

namespace hk::models {

/// LayerNorm without any weights; q, k and v clamped.
void describe_olmo(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  const auto clamp = static_cast<float>(b.keys.limit_or("attention.clamp_kqv", 0));
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer_norm = layer.feed_forward_norm = b.bare_norm();
    layer.attention = b.attention(i);
    layer.attention.rope = rope;
    layer.attention.rope_style = style;
    layer.attention.clamp = clamp;
    layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    b.spec.layers.push_back(layer);
  }
  b.output(b.bare_norm(), 1);
}

/// OLMo 2: norms after the branches only, q and k normalised over all heads together. With a window it is OLMo 3, whose
/// window layers rotate without any scaling.
void describe_olmo2(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const RopeSettings full = b.rope_settings();
  RopeSettings local = full;
  local.scaling = RopeScaling::kNone;
  local.factor = local.attention_factor = 1;
  const std::size_t full_rope = b.rope(full);
  const std::size_t local_rope = b.rope(local);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count_or("attention.sliding_window", 0);
  const std::vector<bool> windowed = b.window_layers(window == 0 ? 0 : 4);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    const bool local_layer = window != 0 && windowed[i];
    LayerSpec layer;
    layer.attention = b.attention(i);
    layer.attention.rope = local_layer ? local_rope : full_rope;
    layer.attention.rope_style = style;
    b.whole_row_norms(layer.attention, i);
    if (local_layer) b.set_window(layer.attention, window);
    layer.mixer_post_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    layer.feed_forward_post_norm = b.norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
    b.spec.layers.push_back(layer);
  }
  b.output();
}

}  // namespace hk::models
