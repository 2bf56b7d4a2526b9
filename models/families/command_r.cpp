// Command-R, R+ (`command-r`) and Command-R7B, Command-A, Aya (`cohere2`): attention and feed-forward side by side from
// one LayerNorm without bias, adjacent rotation, scaled logits.
#include "models/families/families.h"

namespace hk::models {

/// The large model (64 layers) also normalises q and k, with a weight for each head.
void describe_command_r(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  constexpr std::size_t kLayersOfPlus = 64;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    if (b.sizes.layers >= kLayersOfPlus) b.own_head_norms(attention, i);
    b.spec.layers.push_back(b.parallel_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output(b.keys.positive_or("logit_scale", 1));
}

/// Three window layers with rotation, then a full one without.
void describe_cohere2(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  const std::size_t window = b.keys.count("attention.sliding_window");
  const std::vector<bool> windowed = b.window_layers(4);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope_style = style;
    if (windowed[i]) {
      attention.rope = rope;
      b.set_window(attention, window);
    }
    b.spec.layers.push_back(b.parallel_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output(b.keys.positive_or("logit_scale", 1));
}

}  // namespace hk::models
