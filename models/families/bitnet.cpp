// BitNet: ternary weights with a scale beside each matrix (or in its blocks), and one more norm before the output and
// the down matrix.
#include "models/families/families.h"

namespace hk::models {

namespace {

void describe_sub_normed(Builder& b, Activation activation) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    attention.sub_norm = b.norm(Builder::name(i, "attn_sub_norm"), attention.heads * attention.value_length);
    FeedForwardSpec feed_forward = b.gated_feed_forward(i, activation);
    feed_forward.sub_norm = b.norm(Builder::name(i, "ffn_sub_norm"), feed_forward.up.rows);
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, feed_forward));
  }
  b.output();
}

}  // namespace

void describe_bitnet(Builder& b) { describe_sub_normed(b, Activation::kSilu); }
/// BitNet b1.58 2B-4T squares its gate.
void describe_bitnet_b158(Builder& b) { describe_sub_normed(b, Activation::kRelu2); }

}  // namespace hk::models
