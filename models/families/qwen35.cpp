// Qwen3-Next and Qwen3.5, 3.6, dense and with experts: three layers of the gated delta rule, then one of attention with
// a gate, whose query matrix holds both.
#include <fmt/format.h>

#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

DeltaSpec delta(Builder& b, std::size_t i) {
  DeltaSpec d;
  d.key_heads = b.keys.count("ssm.group_count");
  d.value_heads = b.keys.count("ssm.time_step_rank");
  d.key_length = b.keys.count("ssm.state_size");
  const std::size_t inner = b.keys.count("ssm.inner_size");
  if (d.value_heads % d.key_heads != 0 || inner % d.value_heads != 0)
    b.keys.refuse(b.keys.full("ssm.time_step_rank"), fmt::format("{}", d.value_heads),
                  fmt::format("a multiple of the {} key heads that divides the {} channels", d.key_heads, inner));
  d.value_length = inner / d.value_heads;
  const std::size_t channels = 2 * d.key_heads * d.key_length + inner;
  d.qkv = b.weights.matrix(Builder::name(i, "attn_qkv"), channels, b.sizes.width);
  d.gate = b.weights.matrix(Builder::name(i, "attn_gate"), inner, b.sizes.width);
  // Files with one matrix for both are those whose value heads lie grouped by key head.
  d.grouped = b.weights.contains(Builder::name(i, "ssm_ba.weight"));
  if (d.grouped) {
    d.beta_alpha = b.weights.matrix(Builder::name(i, "ssm_ba"), 2 * d.value_heads, b.sizes.width);
  } else {
    d.beta = b.weights.matrix(Builder::name(i, "ssm_beta"), d.value_heads, b.sizes.width);
    d.alpha = b.weights.matrix(Builder::name(i, "ssm_alpha"), d.value_heads, b.sizes.width);
  }
  d.convolution = b.convolution(Builder::name(i, "ssm_conv1d"), b.keys.count("ssm.conv_kernel"), channels);
  d.dt_bias = b.weights.vector(Builder::name(i, "ssm_dt.bias"), d.value_heads);
  d.decay = b.weights.vector(Builder::name(i, "ssm_a"), d.value_heads);
  d.norm = b.norm(Builder::name(i, "ssm_norm"), d.value_length);
  d.out = b.weights.matrix(Builder::name(i, "ssm_out"), b.sizes.width, inner);
  d.epsilon = d.norm.epsilon;
  d.state = b.take_state(d.state_floats());
  return d;
}

void describe_delta(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t interval = b.keys.count_or("full_attention_interval", 4);
  if (interval == 0) b.keys.refuse(b.keys.full("full_attention_interval"), "0", "at least 1");
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.feed_forward_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    if ((i + 1) % interval == 0) {
      layer.attention = b.attention(i, AttentionOptions{.q_holds_gate = true});
      layer.attention.rope = rope;
      layer.attention.rope_style = style;
      b.head_norms(layer.attention, i);
    } else {
      layer.mixer = MixerKind::kDelta;
      layer.delta = delta(b, i);
    }
    if (mixture) {
      ExpertsSpec experts = b.experts(i, {Gating::kSoftmax, true});
      b.shared_expert(experts, i, b.keys.count_or("expert_shared_feed_forward_length", 0));
      Builder::set_experts(layer, std::move(experts));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace

void describe_qwen3next(Builder& b) { describe_delta(b); }
void describe_qwen35(Builder& b) { describe_delta(b); }

}  // namespace hk::models
