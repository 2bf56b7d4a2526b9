// SmolLM3: Llama in which every fourth layer knows no positions.
#include "models/families/families.h"

namespace hk::models {

void describe_smollm3(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    if ((i + 1) % 4 != 0) attention.rope = rope;
    attention.rope_style = style;
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output();
}

}  // namespace hk::models
