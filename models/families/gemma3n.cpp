// Gemma 3n: several residual streams, a low-rank branch beside attention, a second input for every layer, sparse
// activations in the first layers, the last layers reading the cache of earlier ones.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

// What the files do not say.
constexpr std::size_t kLowRank = 64;
constexpr std::size_t kSparseLayers = 10;
constexpr float kSparsity = 1.6448533535003662F;  // deviations above the mean: 5 % of a bell curve lie beyond
constexpr std::size_t kOwnCacheLayers = 20;
// Published files name the same cap; another one in the key would not be used by the runtimes they are made for.
constexpr float kLogitCap = 30;

StreamsUseSpec streams(Builder& b, std::size_t i) {
  StreamsUseSpec s;
  const std::size_t count = b.spec.streams.count;
  const float* stored = b.weights.vector(Builder::name(i, "altup_router_norm.weight"), b.sizes.width);
  std::vector<float> scaled(stored, stored + b.sizes.width);
  for (float& weight : scaled) weight /= static_cast<float>(b.sizes.width);
  s.router_norm = b.bare_norm();
  s.router_norm.weight = b.weights.keep(std::move(scaled));
  s.router = b.weights.matrix(Builder::name(i, "altup_router"), count, b.sizes.width);
  s.predict = b.weights.vectors(Builder::name(i, "altup_predict_coef.weight"), count * count, count);
  s.correct = b.weights.vectors(Builder::name(i, "altup_correct_coef.weight"), count, count);
  s.scale = b.weights.vector(Builder::name(i, "altup_correct_scale.weight"), b.sizes.width);
  return s;
}

LowBranchSpec low_branch(Builder& b, std::size_t i) {
  LowBranchSpec l;
  l.down = b.weights.matrix(Builder::name(i, "laurel_l"), kLowRank, b.sizes.width);
  l.up = b.weights.matrix(Builder::name(i, "laurel_r"), b.sizes.width, kLowRank);
  l.norm = b.norm(Builder::name(i, "laurel_post_norm"), b.sizes.width);
  return l;
}

void read_streams(Builder& b) {
  const std::size_t count = b.keys.count_or("altup.num_inputs", 4);
  if (count < 2) b.keys.refuse(b.keys.full("altup.num_inputs"), fmt::format("{}", count), "at least 2");
  if (b.keys.count_or("altup.active_idx", 0) != 0)
    b.keys.refuse(b.keys.full("altup.active_idx"), "not 0", "0: layers compute the first stream");
  b.spec.streams.up = b.weights.bank("altup_proj", count - 1, b.sizes.width, b.sizes.width);
  b.spec.streams.down = b.weights.bank("altup_unembd_proj", count - 1, b.sizes.width, b.sizes.width);
  b.spec.streams.count = count;
}

/// Files hold keys and values of all layers, also of those that read the cache of others.
void leave_out(Builder& b, std::size_t i) {
  for (const char* part : {"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"})
    b.weights.leave_out(Builder::name(i, part));
}

}  // namespace

void describe_gemma3n(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  b.spec.embedding_scale = std::sqrt(static_cast<float>(b.sizes.width));
  b.per_layer_input();
  if (b.spec.per_layer_input.width == 0)
    b.keys.refuse(b.keys.full("embedding_length_per_layer_input"), "missing", "the width of each layer's own input");
  read_streams(b);
  const auto [full_rope, local_rope] = b.full_and_local_ropes();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count("attention.sliding_window");
  const std::vector<bool> windowed = b.window_layers(5);
  const std::vector<std::optional<std::size_t>> shared =
      b.shared_kv_layers(windowed, b.sizes.layers > kOwnCacheLayers ? b.sizes.layers - kOwnCacheLayers : 0);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionOptions options;
    if (shared[i]) options.kv_slot = b.spec.layers[*shared[i]].attention.kv_slot;
    AttentionSpec a = b.attention(i, options);
    a.scale = 1;  // q and k are normalised
    a.rope = windowed[i] ? local_rope : full_rope;
    a.rope_style = style;
    a.q_norm = b.norm(Builder::name(i, "attn_q_norm"), a.key_length);
    if (shared[i]) {
      leave_out(b, i);
    } else {
      a.k_norm = b.norm(Builder::name(i, "attn_k_norm"), a.key_length);
    }
    a.v_norm = b.bare_norm();
    if (windowed[i]) b.set_window(a, window);
    LayerSpec layer = b.pre_norm_layer(i, a, b.gated_feed_forward(i, Activation::kGelu));
    if (i < kSparseLayers) layer.feed_forward.activation.sparsity = kSparsity;
    layer.mixer_post_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    layer.feed_forward_post_norm = b.norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
    layer.low_branch = low_branch(b, i);
    layer.streams = streams(b, i);
    b.per_layer_use(layer, i);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
  b.spec.logit_softcap = kLogitCap;
}

}  // namespace hk::models
