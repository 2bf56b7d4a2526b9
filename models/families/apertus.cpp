// Apertus: ungated feed-forward with the xIELU activation, whose constants differ from layer to layer; q and k
// normalised.
#include <cmath>
#include <vector>

#include "models/families/families.h"

namespace hk::models {

namespace {

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

}  // namespace

void describe_apertus(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t n = b.sizes.layers;
  const std::vector<float> alpha_n = b.keys.plain_numbers("xielu.alpha_n", n);
  const std::vector<float> alpha_p = b.keys.plain_numbers("xielu.alpha_p", n);
  const std::vector<float> beta = b.keys.plain_numbers("xielu.beta", n);
  const std::vector<float> limit = b.keys.plain_numbers("xielu.eps", n);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    b.head_norms(attention, i);
    FeedForwardSpec feed_forward = b.plain_feed_forward(i, Activation::kXielu);
    feed_forward.activation.xielu = {softplus(alpha_p[i]), beta[i] + softplus(alpha_n[i]), beta[i], limit[i]};
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, feed_forward));
  }
  b.output();
}

}  // namespace hk::models
