// Grok 1, DBRX and Arctic: mixtures in all layers, each with norms of its own.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

/// Norms on both sides of each branch; scores are capped. The cap of router logits that files name is not applied, as
/// in the runtimes they are made for.
void describe_grok(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  // The published values of Grok 1, for files that leave them out.
  b.spec.embedding_scale = static_cast<float>(b.keys.positive_or("embedding_scale", 78.38367176906169));
  const auto scale = static_cast<float>(b.keys.positive_or("attention.output_scale", 0.08838834764831845));
  const auto cap = static_cast<float>(b.keys.limit_or("attn_logit_softcapping", 30));
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    if (b.weights.contains(Builder::name(i, "ffn_up.weight")))
      b.keys.refuse(Builder::name(i, "ffn_up.weight"), "there", "experts without a dense feed-forward beside them");
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    attention.scale = scale;
    attention.softcap = cap;
    LayerSpec layer = b.pre_norm_layer(i, attention);
    layer.mixer_post_norm = b.norm(Builder::name(i, "attn_output_norm"), b.sizes.width);
    layer.feed_forward_post_norm = b.norm(Builder::name(i, "layer_output_norm"), b.sizes.width);
    Builder::set_experts(layer, b.experts(i, {Gating::kSoftmax, true, Activation::kGelu}));
    b.spec.layers.push_back(std::move(layer));
  }
  b.output(b.keys.positive_or("logit_scale", 0.5773502691896257));
  b.spec.logit_softcap = static_cast<float>(b.keys.limit_or("final_logit_softcapping", 0));
}

/// LayerNorm without bias; fused q, k and v are clamped.
void describe_dbrx(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const auto clamp = static_cast<float>(b.keys.limit_or("attention.clamp_kqv", 0));
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.attention = b.attention(i);
    layer.attention.rope = rope;
    layer.attention.rope_style = style;
    layer.attention.clamp = clamp;
    layer.feed_forward_norm = b.norm(Builder::name(i, "attn_output_norm"), b.sizes.width);
    Builder::set_experts(layer, b.experts(i, {Gating::kSoftmax, true}));
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

/// A dense feed-forward as wide as the model, and experts that read the layer's input.
void describe_arctic(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    LayerSpec layer = b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu, b.sizes.width));
    layer.feed_forward_kind = FeedForwardKind::kDenseAndExperts;
    layer.experts = b.experts(i, {Gating::kSoftmax, true});
    layer.experts.input = LayerInput::kLayer;
    layer.experts.norm = b.norm(Builder::name(i, "ffn_norm_exps"), b.sizes.width);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
