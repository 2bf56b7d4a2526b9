// Llama-Nemotron 51B and 253B (`deci`): Llama of which a search has thinned out the layers: some have attention, some
// one matrix in its place, some nothing, and some no feed-forward.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

void describe_deci(Builder& b) {
  b.refuse_experts();
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    if (b.sizes.heads[i] == 0) {
      layer.mixer = MixerKind::kNone;
    } else if (b.sizes.kv_heads[i] == 0) {
      layer.mixer = MixerKind::kLinear;
      layer.attention.output = b.weights.matrix(Builder::name(i, "attn_output"), b.sizes.width, b.sizes.width);
    } else {
      layer.attention = b.attention(i);
      layer.attention.rope = rope;
      layer.attention.rope_style = style;
    }
    if (layer.mixer != MixerKind::kNone) layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    if (b.sizes.feed_forward[i] == 0) {
      layer.feed_forward_kind = FeedForwardKind::kNone;
    } else {
      layer.feed_forward_norm = b.norm(Builder::name(i, "ffn_norm"), b.sizes.width);
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
