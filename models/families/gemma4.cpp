// Gemma 4: window layers with heads and rotation of their own, values normalised, the last layers reading the cache of
// earlier ones, a second input for every layer (E models), experts beside a dense feed-forward (A models).
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

/// Sizes of window layers where they differ.
struct WindowSizes {
  std::size_t key_length, value_length;
};

AttentionSpec attention(Builder& b, std::size_t i, const WindowSizes* own, std::optional<std::size_t> shared_slot) {
  const Sizes full = b.sizes;
  if (own != nullptr) {
    b.sizes.key_length = own->key_length;
    b.sizes.value_length = own->value_length;
  }
  AttentionSpec a = b.attention(i, AttentionOptions{.values_from_keys = true, .kv_slot = shared_slot});
  b.sizes = full;
  a.scale = 1;  // q and k are normalised
  a.q_norm = b.norm(Builder::name(i, "attn_q_norm"), a.key_length);
  if (!shared_slot) a.k_norm = b.norm(Builder::name(i, "attn_k_norm"), a.key_length);
  a.v_norm = b.bare_norm();
  return a;
}

void describe_mixture(Builder& b, LayerSpec& layer, std::size_t i) {
  layer.feed_forward_kind = FeedForwardKind::kDenseAndExperts;
  layer.experts = b.experts(
      i, {.gating = Gating::kSoftmax, .renormalise = true, .activation = Activation::kGelu, .router_norm = true});
  layer.experts.norm = b.norm(Builder::name(i, "pre_ffw_norm_2"), b.sizes.width);
  layer.experts.dense_post_norm = b.norm(Builder::name(i, "post_ffw_norm_1"), b.sizes.width);
  layer.experts.post_norm = b.norm(Builder::name(i, "post_ffw_norm_2"), b.sizes.width);
}

}  // namespace

void describe_gemma4(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  b.spec.embedding_scale = std::sqrt(static_cast<float>(b.sizes.width));
  b.per_layer_input();
  const RopeSettings full = b.rope_settings();
  RopeSettings local = full;
  local.n_rot = b.keys.count_or("rope.dimension_count_swa", full.n_rot);
  local.base = b.keys.positive_or("rope.freq_base_swa", full.base);
  local.scaling = RopeScaling::kNone;
  local.factor = 1;
  local.factors = nullptr;  // rope_freqs is for full layers
  const WindowSizes own{b.keys.count_or("attention.key_length_swa", b.sizes.key_length),
                        b.keys.count_or("attention.value_length_swa", b.sizes.value_length)};
  if (local.n_rot == 0 || local.n_rot % 2 != 0 || local.n_rot > own.key_length)
    b.keys.refuse(b.keys.full("rope.dimension_count_swa"), fmt::format("{}", local.n_rot),
                  fmt::format("an even number of dimensions up to the head size {}", own.key_length));
  const std::size_t full_rope = b.rope(full);
  const std::size_t local_rope = b.rope(local);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count("attention.sliding_window");
  const std::vector<bool> windowed = b.window_layers(6);
  const std::vector<std::optional<std::size_t>> shared = b.shared_kv_layers(windowed, 0);
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    const std::optional<std::size_t> slot =
        shared[i] ? std::optional(b.spec.layers[*shared[i]].attention.kv_slot) : std::nullopt;
    AttentionSpec a = attention(b, i, windowed[i] ? &own : nullptr, slot);
    a.rope = windowed[i] ? local_rope : full_rope;
    a.rope_style = style;
    if (windowed[i]) b.set_window(a, window);
    LayerSpec layer = b.pre_norm_layer(i, a, b.gated_feed_forward(i, Activation::kGelu));
    layer.mixer_post_norm = b.norm(Builder::name(i, "post_attention_norm"), b.sizes.width);
    layer.feed_forward_post_norm = b.norm(Builder::name(i, "post_ffw_norm"), b.sizes.width);
    if (mixture && b.weights.contains(Builder::name(i, "ffn_gate_inp.weight"))) describe_mixture(b, layer, i);
    b.per_layer_use(layer, i);
    if (const float* scale = b.weights.optional_vector(Builder::name(i, "layer_output_scale.weight"), 1))
      layer.output_scale = *scale;
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
  b.spec.logit_softcap = static_cast<float>(b.keys.limit_or("final_logit_softcapping", 0));
}

}  // namespace hk::models
