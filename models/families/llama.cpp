// Llama 2 and 3, Mistral, TinyLlama, SmolLM2, Yi, Falcon3 and everything else that calls itself `llama`; and the
// families that are the same function under another name.
//
// RMSNorm before attention and feed-forward, grouped-query attention with rotation of adjacent pairs, gated SiLU. A
// sliding window in the metadata is not used: the files that carry one were made for runtimes that ignore it.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

void describe_llama(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;  // Mixtral
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    LayerSpec layer = b.pre_norm_layer(i, attention);
    if (mixture) {
      Builder::set_experts(layer, b.experts(i, {Gating::kSoftmax, true}));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
