// Families that know positions by a bias on scores that grows with distance (ALiBi): BLOOM, MPT, Refact, Jais, and
// Baichuan where it is deep.
#include "models/families/families.h"

namespace hk::models {

namespace {

constexpr double kUsualMaxBias = 8;  // published with the method

}  // namespace

/// BLOOM: LayerNorm, also on the embeddings; biases everywhere; ungated GELU.
void describe_bloom(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  b.spec.embedding_norm = b.norm("token_embd_norm", b.sizes.width);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    b.alibi(attention, kUsualMaxBias);
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.plain_feed_forward(i, Activation::kGelu)));
  }
  b.output();
}

/// MPT: q, k and v clamped; a model trained without position bias has learned positions instead.
void describe_mpt(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  if (b.weights.contains("position_embd.weight")) b.positions();
  const auto clamp = static_cast<float>(b.keys.limit_or("attention.clamp_kqv", 0));
  const double max_bias = b.keys.limit_or("attention.max_alibi_bias", 0);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.clamp = clamp;
    if (max_bias > 0) b.alibi(attention, max_bias);
    if (b.weights.contains(Builder::name(i, "attn_q_norm.weight"))) b.whole_row_norms(attention, i);
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.plain_feed_forward(i, Activation::kGelu)));
  }
  b.output();
}

void describe_refact(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    b.alibi(attention, kUsualMaxBias);
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output();
}

/// Jais divides scores by the head size itself, not its root.
void describe_jais(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const double max_bias = b.keys.limit_or("attention.max_alibi_bias", kUsualMaxBias);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.scale = 1 / static_cast<float>(attention.key_length);
    if (max_bias > 0) b.alibi(attention, max_bias);
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output();
}

/// Baichuan 7B is Llama; 13B has position biases in the place of rotation. Only the number of layers tells which one it
/// is, and runtimes agree that any other number has neither.
void describe_baichuan(Builder& b) {
  describe_llama(b);
  constexpr std::size_t kLayersOf7B = 32, kLayersOf13B = 40;
  if (b.sizes.layers == kLayersOf7B) return;
  for (LayerSpec& layer : b.spec.layers) {
    layer.attention.rope.reset();
    if (b.sizes.layers == kLayersOf13B) b.alibi(layer.attention, kUsualMaxBias);
  }
}

}  // namespace hk::models
