// EXAONE 4: norms after the branches only, q and k normalised per head. The 32B model (64 layers) mixes window layers
// with full ones that know no positions; the others see everything.
#include "models/families/families.h"

namespace hk::models {

void describe_exaone4(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  constexpr std::size_t kLayersOfHybrid = 64;
  const bool hybrid = b.sizes.layers == kLayersOfHybrid;
  const std::size_t window = hybrid ? b.keys.count("attention.sliding_window") : 0;
  const std::vector<bool> windowed = b.window_layers(hybrid ? 4 : 0);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.attention = b.attention(i);
    layer.attention.rope_style = style;
    b.head_norms(layer.attention, i);
    if (!hybrid || windowed[i]) layer.attention.rope = rope;
    if (hybrid && windowed[i]) b.set_window(layer.attention, window);
    layer.mixer_post_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    layer.feed_forward_post_norm = b.norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
    b.spec.layers.push_back(layer);
  }
  b.output();
}

}  // namespace hk::models
