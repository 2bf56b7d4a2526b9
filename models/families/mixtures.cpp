// Mixtures of experts whose attention is that of a dense family: Qwen2 and Qwen3 MoE, OLMoE, PhiMoE, GLM-4.5,
// dots.llm1, DeepSeek 1, Mellum 2, Ling (`bailingmoe`, `bailingmoe2`), ERNIE 4.5, Hunyuan, MiniMax M2.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "models/families/families.h"

namespace hk::models {

namespace {

enum class HeadNorms { kNone, kOptional, kBeforeRope, kAfterRope, kWholeRow };

/// What tells these families apart.
struct Shape {
  RopeStyle rope_style = RopeStyle::kHalves;
  Bias bias = Bias::kOptional;
  HeadNorms head_norms = HeadNorms::kNone;
  ExpertDefaults experts;
  std::size_t shared_experts = 0;  ///< when no key says how many
  const char* feed_forward_norm = "ffn_norm";
  bool all_layers_mix = false;  ///< leading_dense_block_count is not looked at
};

void describe_attention(Builder& b, AttentionSpec& attention, std::size_t layer, HeadNorms norms) {
  if (norms == HeadNorms::kOptional && !b.weights.contains(Builder::name(layer, "attn_q_norm.weight"))) return;
  if (norms == HeadNorms::kWholeRow) b.whole_row_norms(attention, layer);
  if (norms != HeadNorms::kNone && norms != HeadNorms::kWholeRow) b.head_norms(attention, layer);
  attention.head_norm_after_rope = norms == HeadNorms::kAfterRope;
}

void describe_mixture(Builder& b, const Shape& shape) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, shape.rope_style);
  const std::size_t step = b.keys.count_or("interleave_moe_layer_step", 1);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.attention = b.attention(i, shape.bias);
    layer.attention.rope = rope;
    layer.attention.rope_style = style;
    describe_attention(b, layer.attention, i, shape.head_norms);
    layer.feed_forward_norm = b.norm(Builder::name(i, shape.feed_forward_norm), b.sizes.width);
    const bool mixes = shape.all_layers_mix || (b.has_experts(i) && step != 0 && (i + 1) % step == 0);
    b.experts_or_dense(layer, i, mixes, shape.experts, shape.shared_experts);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

constexpr ExpertDefaults kSoftmaxPlain{Gating::kSoftmax, false};
constexpr ExpertDefaults kSoftmaxRenormalised{Gating::kSoftmax, true};
constexpr ExpertDefaults kSigmoidRenormalised{Gating::kSigmoid, true};

}  // namespace

/// The shared expert stands behind a gate of its own.
void describe_qwen2moe(Builder& b) {
  describe_mixture(b, {.bias = Bias::kRequired, .experts = kSoftmaxPlain, .shared_experts = 1});
}
void describe_qwen3moe(Builder& b) {
  describe_mixture(b, {.head_norms = HeadNorms::kBeforeRope, .experts = kSoftmaxRenormalised});
}
/// Mellum 2: Qwen3 MoE in which three layers of four see a window and rotate without any scaling.
void describe_mellum(Builder& b) {
  describe_qwen3moe(b);
  const std::size_t window = b.keys.count_or("attention.sliding_window", 0);
  if (window == 0) return;
  RopeSettings local = b.rope_settings();
  // Runtimes do not agree on what another base for window layers would mean.
  if (b.keys.positive_or("rope.freq_base_swa", local.base) != local.base)
    b.keys.refuse(b.keys.full("rope.freq_base_swa"), "another base",
                  fmt::format("that of full layers, {}", local.base));
  local.scaling = RopeScaling::kNone;
  local.factor = local.attention_factor = 1;
  const std::size_t local_rope = b.rope(local);
  const std::vector<bool> windowed = b.window_layers(4);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    if (!windowed[i]) continue;
    b.spec.layers[i].attention.rope = local_rope;
    b.set_window(b.spec.layers[i].attention, window);
  }
}
void describe_olmoe(Builder& b) { describe_mixture(b, {.head_norms = HeadNorms::kWholeRow, .experts = kSoftmaxPlain}); }
/// The norms are RMS norms with a bias.
void describe_phimoe(Builder& b) {
  describe_mixture(b, {.experts = kSoftmaxRenormalised});
  const auto add_bias = [&](NormSpec& norm, const std::string& name) {
    norm.bias = b.weights.optional_vector(name + ".bias", b.sizes.width);
  };
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    add_bias(b.spec.layers[i].mixer_norm, Builder::name(i, "attn_norm"));
    add_bias(b.spec.layers[i].feed_forward_norm, Builder::name(i, "ffn_norm"));
  }
  add_bias(b.spec.output_norm, "output_norm");
}
void describe_glm4moe(Builder& b) {
  describe_mixture(b, {.head_norms = HeadNorms::kOptional,
                       .experts = kSigmoidRenormalised,
                       .shared_experts = 1,
                       .feed_forward_norm = "post_attention_norm"});
}
void describe_dots1(Builder& b) {
  describe_mixture(b,
                   {.head_norms = HeadNorms::kBeforeRope, .experts = {Gating::kSigmoid, false}, .shared_experts = 1});
}
void describe_deepseek(Builder& b) {
  describe_mixture(b, {.rope_style = RopeStyle::kAdjacent, .experts = kSoftmaxPlain, .shared_experts = 1});
}
void describe_bailingmoe(Builder& b) {
  describe_mixture(
      b, {.rope_style = RopeStyle::kAdjacent, .experts = kSoftmaxPlain, .shared_experts = 1, .all_layers_mix = true});
}
void describe_bailingmoe2(Builder& b) {
  describe_mixture(b,
                   {.head_norms = HeadNorms::kBeforeRope, .experts = {Gating::kSigmoid, false}, .shared_experts = 1});
}
void describe_ernie4_5_moe(Builder& b) {
  describe_mixture(b, {.rope_style = RopeStyle::kAdjacent, .experts = kSoftmaxRenormalised});
}
void describe_hunyuan_moe(Builder& b) {
  describe_mixture(b, {.head_norms = HeadNorms::kAfterRope, .experts = kSoftmaxRenormalised, .shared_experts = 1});
}
void describe_minimax_m2(Builder& b) {
  describe_mixture(b, {.head_norms = HeadNorms::kWholeRow, .experts = kSigmoidRenormalised});
}

}  // namespace hk::models
