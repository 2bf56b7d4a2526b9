// GPT-2, StarCoder 1 and 2, CodeShell, GPT-NeoX, Nemotron, Arcee, Apertus, StableLM, Orion, Falcon: LayerNorm or
// RMSNorm, mostly an ungated feed-forward, biases where the file has them.
#include <string>

#include "models/families/families.h"

namespace hk::models {

namespace {

struct Shape {
  NormKind norm;
  Activation activation;
  bool gated;
  RopeStyle rope_style;
};

/// Sequential layers with norms before both branches.
void describe_rotated(Builder& b, const Shape& shape) {
  b.read_sizes(shape.norm);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, shape.rope_style);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    b.spec.layers.push_back(b.pre_norm_layer(
        i, attention,
        shape.gated ? b.gated_feed_forward(i, shape.activation) : b.plain_feed_forward(i, shape.activation)));
  }
  b.output();
}

}  // namespace

/// The trained window of StarCoder 2 is not used, as in the runtimes its files are made for.
void describe_starcoder2(Builder& b) {
  describe_rotated(b, {NormKind::kLayer, Activation::kGelu, false, RopeStyle::kHalves});
}
void describe_codeshell(Builder& b) {
  describe_rotated(b, {NormKind::kLayer, Activation::kGelu, false, RopeStyle::kHalves});
}
void describe_nemotron(Builder& b) {
  describe_rotated(b, {NormKind::kLayer, Activation::kRelu2, false, RopeStyle::kHalves});
}
void describe_arcee(Builder& b) {
  describe_rotated(b, {NormKind::kRms, Activation::kRelu2, false, RopeStyle::kAdjacent});
}
void describe_orion(Builder& b) {
  describe_rotated(b, {NormKind::kLayer, Activation::kSilu, true, RopeStyle::kHalves});
}

/// GPT-2 and StarCoder 1: positions are learned rows added to the embedding.
void describe_gpt2(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  b.positions();
  for (std::size_t i = 0; i < b.sizes.layers; ++i)
    b.spec.layers.push_back(b.pre_norm_layer(i, b.attention(i), b.plain_feed_forward(i, Activation::kGelu)));
  b.output();
}

/// Pythia, GPT-NeoX: both branches from the layer's input, each with its own norm, when use_parallel_residual says so.
void describe_gptneox(Builder& b) {
  describe_rotated(b, {NormKind::kLayer, Activation::kGelu, false, RopeStyle::kHalves});
  const bool parallel = b.keys.flag_or("use_parallel_residual", true);
  for (LayerSpec& layer : b.spec.layers) layer.parallel = parallel;
}

/// Falcon 7B and 40B: both branches side by side; 40B has a norm of its own for attention.
void describe_falcon(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    LayerSpec layer = b.parallel_layer(i, attention, b.plain_feed_forward(i, Activation::kGelu));
    if (const NormSpec own = b.optional_norm(Builder::name(i, "attn_norm_2"), b.sizes.width)) {
      layer.feed_forward_norm = layer.mixer_norm;
      layer.mixer_norm = own;
    }
    b.spec.layers.push_back(layer);
  }
  b.output();
}

/// StableLM: without ffn_norm (12B) the branches stand side by side; 12B also normalises q and k with a weight for each
/// head.
void describe_stablelm(Builder& b) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    if (b.weights.contains(Builder::name(i, "attn_q_norm.weight"))) b.own_head_norms(attention, i);
    const FeedForwardSpec feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    b.spec.layers.push_back(b.weights.contains(Builder::name(i, "ffn_norm.weight"))
                                ? b.pre_norm_layer(i, attention, feed_forward)
                                : b.parallel_layer(i, attention, feed_forward));
  }
  b.output();
}

}  // namespace hk::models
