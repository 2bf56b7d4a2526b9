// MiMo V2 and Step 3.5: window layers with heads, bases and sinks of their own, experts behind a sigmoid router.
#include <fmt/format.h>

#include <utility>

#include "models/families/families.h"

namespace hk::models {

namespace {

RopeSettings local_rope(const Builder& b, const RopeSettings& full) {
  RopeSettings local = full;
  local.base = b.keys.positive_or("rope.freq_base_swa", full.base);
  local.scaling = RopeScaling::kNone;
  local.factor = 1;
  return local;
}

/// Layers with a router are mixtures.
bool mixes(const Builder& b, std::size_t layer) {
  return b.weights.contains(Builder::name(layer, "ffn_gate_inp.weight"));
}

}  // namespace

/// Values are narrower than keys and scaled; window layers have sinks.
void describe_mimo2(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const RopeSettings full = b.rope_settings();
  const std::size_t full_rope = b.rope(full);
  const std::size_t window_rope = b.rope(local_rope(b, full));
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count("attention.sliding_window");
  const std::vector<bool> windowed = b.window_layers(0);
  const auto value_scale = static_cast<float>(b.keys.positive_or("attention.value_scale", 1));
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = windowed[i] ? window_rope : full_rope;
    attention.rope_style = style;
    attention.v.scale *= value_scale;
    attention.sinks = b.weights.optional_vector(Builder::name(i, "attn_sinks.weight"), attention.heads);
    if (windowed[i]) b.set_window(attention, window);
    LayerSpec layer = b.pre_norm_layer(i, attention);
    if (mixes(b, i)) {
      Builder::set_experts(layer, b.experts(i, {Gating::kSigmoid, true}));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

/// A gate for each head; full layers rotate half of the dimensions; the last layers limit their activations.
void describe_step35(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  RopeSettings full = b.rope_settings();
  const std::size_t window_rope = b.rope(local_rope(b, full));
  full.n_rot /= 2;
  if (full.n_rot % 2 != 0)
    b.keys.refuse(b.keys.full("rope.dimension_count"), fmt::format("{}", 2 * full.n_rot), "a multiple of 4");
  const std::size_t full_rope = b.rope(full);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  const std::size_t window = b.keys.count("attention.sliding_window");
  const std::vector<bool> windowed = b.window_layers(4);
  const std::vector<float> limits = b.per_layer_limits("swiglu_clamp_exp", 0);
  const std::vector<float> shared_limits = b.per_layer_limits("swiglu_clamp_shexp", 0);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = windowed[i] ? window_rope : full_rope;
    attention.rope_style = style;
    b.head_norms(attention, i);
    attention.gate = b.weights.matrix(Builder::name(i, "attn_gate"), attention.heads, b.sizes.width);
    if (windowed[i]) b.set_window(attention, window);
    LayerSpec layer = b.pre_norm_layer(i, attention);
    if (mixes(b, i)) {
      ExpertsSpec experts = b.experts(i, {Gating::kSigmoid, true});
      b.shared_expert(experts, i, b.shared_width(i, 1));
      experts.activation.limit = limits[i];
      experts.shared.activation.limit = shared_limits[i];
      Builder::set_experts(layer, std::move(experts));
    } else {
      layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
      layer.feed_forward.activation.limit = shared_limits[i];
    }
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
