// EXAONE MoE and AFMoE (Trinity): windows with rotation on three layers of four, full attention without it on the
// fourth, experts behind a sigmoid router.
#include <cmath>
#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

void describe_windowed(Builder& b, bool gated_and_normed_after) {
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count("attention.sliding_window");
  const std::vector<bool> windowed = b.window_layers(4);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    if (windowed[i]) attention.rope = rope;
    attention.rope_style = style;
    b.head_norms(attention, i);
    if (windowed[i]) b.set_window(attention, window);
    if (gated_and_normed_after)
      attention.gate =
          b.weights.matrix(Builder::name(i, "attn_gate"), attention.heads * attention.value_length, b.sizes.width);
    LayerSpec layer = b.pre_norm_layer(i, attention);
    if (gated_and_normed_after) {
      layer.mixer_post_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
      layer.feed_forward_post_norm = b.norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
    }
    b.experts_or_dense(layer, i, b.has_experts(i), {Gating::kSigmoid, true}, 0);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace

void describe_exaone_moe(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  describe_windowed(b, false);
}

/// Attention is multiplied by a gate, and both branches are normalised before they join the stream.
void describe_afmoe(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  b.spec.embedding_scale = std::sqrt(static_cast<float>(b.sizes.width));
  describe_windowed(b, true);
}

}  // namespace hk::models
