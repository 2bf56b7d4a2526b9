// gpt-oss: windows on every other layer, a sink in each head's softmax, biases everywhere, experts chosen by the
// largest logits, with a clamped activation.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

void describe_gpt_oss(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count("attention.sliding_window");
  const std::vector<bool> windowed = b.window_layers(2);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.attention = b.attention(i);
    layer.attention.rope = rope;
    layer.attention.rope_style = style;
    layer.attention.sinks = b.weights.vector(Builder::name(i, "attn_sinks.weight"), layer.attention.heads);
    if (windowed[i]) b.set_window(layer.attention, window);
    layer.feed_forward_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    Builder::set_experts(layer, b.experts(i, {Gating::kSoftmaxOverChosen, false, Activation::kSwigluOai}));
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
