// Kimi Linear: three layers of the delta rule whose memory forgets by channel, then one of latent attention, which
// knows no positions; experts behind a sigmoid router after the first layers.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "models/families/families.h"

namespace hk::models {

namespace {

LowRankSpec low_rank(Builder& b, std::size_t i, const char* down, const char* up, std::size_t rank, std::size_t width) {
  LowRankSpec low;
  low.down = b.weights.matrix(Builder::name(i, down), rank, b.sizes.width);
  low.up = b.weights.matrix(Builder::name(i, up), width, rank);
  return low;
}

/// Stored for q, k and v apart, with leading or trailing ones in their shapes.
ConvolutionSpec convolution(Builder& b, std::size_t i, std::size_t kernel, std::size_t channels) {
  constexpr const char* kParts[3] = {"ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"};
  const float* stored[3];
  for (std::size_t part = 0; part < 3; ++part)
    stored[part] = b.weights.values_of(Builder::name(i, kParts[part]) + ".weight", channels * kernel);
  std::vector<float> taps(3 * channels * kernel);
  for (std::size_t c = 0; c < 3 * channels; ++c) {
    for (std::size_t tap = 0; tap < kernel; ++tap)
      taps[tap * 3 * channels + c] = stored[c / channels][c % channels * kernel + tap];
  }
  ConvolutionSpec c;
  c.kernel = kernel;
  c.channels = 3 * channels;
  c.weights = b.weights.keep(std::move(taps));
  c.state = b.take_state(c.state_floats());
  return c;
}

DeltaSpec delta(Builder& b, std::size_t i) {
  DeltaSpec d;
  d.key_heads = d.value_heads = b.sizes.heads[i];
  d.key_length = d.value_length = b.keys.count("kda.head_dim");
  const std::size_t inner = d.key_heads * d.key_length;
  d.q = b.weights.matrix(Builder::name(i, "attn_q"), inner, b.sizes.width);
  d.k = b.weights.matrix(Builder::name(i, "attn_k"), inner, b.sizes.width);
  d.v = b.weights.matrix(Builder::name(i, "attn_v"), inner, b.sizes.width);
  d.convolution = convolution(b, i, b.keys.count("ssm.conv_kernel"), inner);
  d.channel_alpha = low_rank(b, i, "ssm_f_a", "ssm_f_b", d.key_length, inner);
  d.channel_alpha.base = b.weights.vector(Builder::name(i, "ssm_dt.bias"), inner);
  d.decay = b.weights.values_of(Builder::name(i, "ssm_a"), d.key_heads);
  d.beta = b.weights.matrix(Builder::name(i, "ssm_beta"), d.value_heads, b.sizes.width);
  d.low_gate = low_rank(b, i, "ssm_g_a", "ssm_g_b", d.key_length, inner);
  d.sigmoid_gate = true;
  d.norm = b.norm(Builder::name(i, "ssm_norm"), d.value_length);
  d.out = b.weights.matrix(Builder::name(i, "attn_output"), b.sizes.width, inner);
  d.epsilon = d.norm.epsilon;
  d.state = b.take_state(d.state_floats());
  return d;
}

/// Later models under the same name differ in ways that are not known here.
void refuse_later_models(const Builder& b) {
  for (const char* key : {"moe_latent_size", "attention.residual_block_size", "hidden_activation"}) {
    if (b.keys.contains(key)) b.keys.refuse(b.keys.full(key), "there", "a model of the first generation, without it");
  }
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    if (b.weights.contains(Builder::name(i, "attn_gate.weight")))
      b.keys.refuse(Builder::name(i, "attn_gate.weight"), "there", "ungated attention, as the first generation has");
  }
}

}  // namespace

void describe_kimi_linear(Builder& b) {
  b.read_sizes(NormKind::kRms);
  refuse_later_models(b);
  b.embedding();
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    if (b.sizes.kv_heads[i] == 0) {
      layer.mixer = MixerKind::kDelta;
      layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
      layer.feed_forward_norm = b.norm(Builder::name(i, "ffn_norm"), b.sizes.width);
      layer.delta = delta(b, i);
    } else {
      layer = b.latent_layer(i, std::nullopt, RopeStyle::kAdjacent);
    }
    b.experts_or_dense(layer, i, b.has_experts(i), {Gating::kSigmoid, true}, 1);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
