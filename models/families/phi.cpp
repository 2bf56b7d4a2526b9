// Phi-2, and Phi-3, 3.5, 4 and their minis.
#include "models/families/families.h"

namespace hk::models {

/// LayerNorm, biases everywhere, attention and ungated GELU side by side, part of each head rotated.
void describe_phi2(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    b.spec.layers.push_back(b.parallel_layer(i, attention, b.plain_feed_forward(i, Activation::kGelu)));
  }
  b.output();
}

/// Llama with fused matrices, rotation of halves and two sets of factors for short and long contexts. The window in the
/// metadata is not used, as in the runtimes these files are made for.
void describe_phi3(Builder& b) {
  b.refuse_experts();
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output();
}

}  // namespace hk::models
