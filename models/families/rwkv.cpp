// RWKV 6 and 7: no attention; time mixing and channel mixing over a state of fixed size.
#include <fmt/format.h>

#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

/// Vectors may be stored with leading ones in their shape.
const float* vector(Builder& b, std::size_t layer, const char* part) {
  return b.weights.values_of(Builder::name(layer, part) + ".weight", b.sizes.width);
}

LowRankSpec low_rank(Builder& b, std::size_t layer, const char* base, const char* down, const char* up,
                     std::size_t rank) {
  LowRankSpec low;
  if (base != nullptr) low.base = vector(b, layer, base);
  low.down = b.weights.matrix(Builder::name(layer, down), rank, b.sizes.width);
  low.up = b.weights.matrix(Builder::name(layer, up), b.sizes.width, rank);
  return low;
}

void read_heads(Builder& b, TimeMixSpec& t) {
  t.head_size = b.keys.count("wkv.head_size");
  if (b.sizes.width % t.head_size != 0)
    b.keys.refuse(b.keys.full("wkv.head_size"), fmt::format("{}", t.head_size),
                  fmt::format("a divisor of the width {}", b.sizes.width));
  t.heads = b.sizes.width / t.head_size;
  t.shift = b.take_state(b.sizes.width);
  t.memory = b.take_state(b.sizes.width * t.head_size);
}

void bind_common(Builder& b, TimeMixSpec& t, std::size_t i) {
  const std::size_t width = b.sizes.width;
  read_heads(b, t);
  t.receptance = b.weights.matrix(Builder::name(i, "time_mix_receptance"), width, width);
  t.key = b.weights.matrix(Builder::name(i, "time_mix_key"), width, width);
  t.value = b.weights.matrix(Builder::name(i, "time_mix_value"), width, width);
  t.output = b.weights.matrix(Builder::name(i, "time_mix_output"), width, width);
  t.norm = b.norm(Builder::name(i, "time_mix_ln"), width);
  t.norm.epsilon = 64e-5F;
  if (t.norm.bias == nullptr)
    b.keys.refuse(Builder::name(i, "time_mix_ln.bias"), "missing", fmt::format("a bias of {} values", width));
}

TimeMixSpec sixth(Builder& b, std::size_t i) {
  TimeMixSpec t;
  bind_common(b, t, i);
  const std::size_t width = b.sizes.width;
  const std::size_t rank = b.keys.count("time_mix_extra_dim");
  t.lerp_all = vector(b, i, "time_mix_lerp_x");
  t.lerp[TimeMixSpec::kDecay] = vector(b, i, "time_mix_lerp_w");
  t.lerp[TimeMixSpec::kKey] = vector(b, i, "time_mix_lerp_k");
  t.lerp[TimeMixSpec::kValue] = vector(b, i, "time_mix_lerp_v");
  t.lerp[TimeMixSpec::kReceptance] = vector(b, i, "time_mix_lerp_r");
  t.lerp[TimeMixSpec::kGate] = vector(b, i, "time_mix_lerp_g");
  t.lerp_down = b.weights.matrix(Builder::name(i, "time_mix_w1"), 5 * rank, width);
  t.lerp_up = b.weights.bank(Builder::name(i, "time_mix_w2"), 5, width, rank);
  t.gate = b.weights.matrix(Builder::name(i, "time_mix_gate"), width, width);
  t.bonus = b.weights.values_of(Builder::name(i, "time_mix_first") + ".weight", width);
  t.decay =
      low_rank(b, i, "time_mix_decay", "time_mix_decay_w1", "time_mix_decay_w2", b.keys.count("time_decay_extra_dim"));
  return t;
}

TimeMixSpec seventh(Builder& b, std::size_t i) {
  TimeMixSpec t;
  bind_common(b, t, i);
  t.removes = true;
  t.first = i == 0;
  const float* lerps = b.weights.values_of(Builder::name(i, "time_mix_lerp_fused.weight"), 6 * b.sizes.width);
  for (std::size_t p = 0; p < TimeMixSpec::kInputs; ++p) t.lerp[p] = lerps + p * b.sizes.width;
  t.decay = low_rank(b, i, "time_mix_w0", "time_mix_w1", "time_mix_w2", b.keys.count("attention.decay_lora_rank"));
  t.rate = low_rank(b, i, "time_mix_a0", "time_mix_a1", "time_mix_a2", b.keys.count("attention.iclr_lora_rank"));
  // The first layer may have one too, which nothing reads: its values are those that others mix in.
  if (i != 0) {
    t.value_mix = low_rank(b, i, "time_mix_v0", "time_mix_v1", "time_mix_v2",
                           b.keys.count("attention.value_residual_mix_lora_rank"));
  } else {
    for (const char* part : {"time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight"})
      b.weights.leave_out(Builder::name(i, part));
  }
  t.low_gate = low_rank(b, i, nullptr, "time_mix_g1", "time_mix_g2", b.keys.count("attention.gate_lora_rank"));
  t.key_scale = vector(b, i, "time_mix_k_k");
  t.rate_scale = vector(b, i, "time_mix_k_a");
  t.bonus = vector(b, i, "time_mix_r_k");
  return t;
}

ChannelMixSpec channel_mix(Builder& b, std::size_t i, bool gated) {
  ChannelMixSpec c;
  const std::size_t width = b.sizes.width;
  c.lerp_key = vector(b, i, "channel_mix_lerp_k");
  c.key = b.weights.matrix(Builder::name(i, "channel_mix_key"), b.sizes.feed_forward[i], width);
  c.value = b.weights.matrix(Builder::name(i, "channel_mix_value"), width, b.sizes.feed_forward[i]);
  if (gated) {
    c.lerp_receptance = vector(b, i, "channel_mix_lerp_r");
    c.receptance = b.weights.matrix(Builder::name(i, "channel_mix_receptance"), width, width);
  }
  c.shift = b.take_state(width);
  return c;
}

void describe_rwkv(Builder& b, TimeMixSpec (*time_mix)(Builder&, std::size_t), bool gated) {
  b.read_sizes(NormKind::kLayer);
  b.embedding();
  b.spec.embedding_norm = b.norm("token_embd_norm", b.sizes.width);
  const std::size_t halved = b.keys.count_or("rescale_every_n_layers", 0);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer;
    layer.mixer = MixerKind::kTimeMix;
    layer.mixer_norm = b.norm(Builder::name(i, "attn_norm"), b.sizes.width);
    layer.time_mix = time_mix(b, i);
    layer.feed_forward_kind = FeedForwardKind::kChannelMix;
    layer.feed_forward_norm = b.norm(Builder::name(i, "attn_norm_2"), b.sizes.width);
    layer.channel_mix = channel_mix(b, i, gated);
    if (halved != 0 && (i + 1) % halved == 0) layer.output_scale = 0.5F;  // the stored weights count on it
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace

void describe_rwkv6(Builder& b) { describe_rwkv(b, sixth, true); }
void describe_rwkv7(Builder& b) { describe_rwkv(b, seventh, false); }

}  // namespace hk::models
