// Qwen 1, 2, 2.5 and 3, the text side of Qwen2-VL and Qwen3-VL, and relatives that differ in norms and biases only.
//
// RMSNorm before attention and feed-forward, rotation of halves, gated SiLU. Several rope sections (vision) have the
// same position for text, which is plain rotation.
#include "models/families/families.h"

namespace hk::models {

namespace {

enum class HeadNorms { kNone, kBeforeRope, kAfterRope };

void describe_halves(Builder& b, Bias bias, HeadNorms norms) {
  b.refuse_experts();
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i, bias);
    attention.rope = rope;
    attention.rope_style = style;
    if (norms != HeadNorms::kNone) b.head_norms(attention, i);
    attention.head_norm_after_rope = norms == HeadNorms::kAfterRope;
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output();
}

}  // namespace

void describe_qwen2(Builder& b) { describe_halves(b, Bias::kRequired, HeadNorms::kNone); }
void describe_qwen3(Builder& b) { describe_halves(b, Bias::kOptional, HeadNorms::kBeforeRope); }
/// EXAONE 3.
void describe_exaone(Builder& b) { describe_halves(b, Bias::kOptional, HeadNorms::kNone); }
void describe_pangu(Builder& b) { describe_halves(b, Bias::kRequired, HeadNorms::kNone); }
void describe_hunyuan_dense(Builder& b) { describe_halves(b, Bias::kOptional, HeadNorms::kAfterRope); }
/// OpenELM: head counts and widths grow from layer to layer, which the lists in its metadata say.
void describe_openelm(Builder& b) { describe_halves(b, Bias::kOptional, HeadNorms::kBeforeRope); }

/// Maincoder rotates neighbours.
void describe_maincoder(Builder& b) {
  describe_halves(b, Bias::kOptional, HeadNorms::kAfterRope);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  for (LayerSpec& layer : b.spec.layers) layer.attention.rope_style = style;
}

/// The first Qwen counts gate and up together in feed_forward_length.
void describe_qwen(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i, Bias::kRequired);
    attention.rope = rope;
    attention.rope_style = style;
    b.spec.layers.push_back(
        b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu, b.sizes.feed_forward[i] / 2)));
  }
  b.output();
}

/// Seed-OSS names the feed-forward's norm after attention.
void describe_seed_oss(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.attention = b.attention(i);
    layer.attention.rope = rope;
    layer.attention.rope_style = style;
    layer.feed_forward_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    b.spec.layers.push_back(layer);
  }
  b.output();
}

}  // namespace hk::models
