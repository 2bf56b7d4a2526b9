// Latent attention: DeepSeek 2 and 3 with everything that calls itself `deepseek2` (Kimi K2, GLM-4.7 Flash), PLM,
// MiniCPM 3.
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "models/families/families.h"

namespace hk::models {

void describe_deepseek2(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const RopeSettings settings = b.rope_settings();
  const std::size_t rope = b.rope(settings);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  if (b.keys.number_or("attention.temperature_scale", 0) != 0)
    b.keys.refuse(b.keys.full("attention.temperature_scale"), "not 0", "queries of one temperature at all positions");
  double magnitude = 1;
  if (settings.scaling == RopeScaling::kYarn) {
    // The magnitude of YaRN goes into the scale of scores, once for q and once for k; rotation leaves lengths alone.
    const double stretch = std::log(std::max(1.0, settings.factor));
    magnitude = settings.attention_factor * (1 + settings.yarn_log_multiplier * stretch);
    b.spec.ropes[rope].magnitude = 1;
  }
  // Files without the key: the router of GLM-4.7 Flash, told by its depth, is the only one that is not a softmax.
  constexpr std::size_t kLayersOfFlash = 47;
  const Gating gating = b.sizes.layers == kLayersOfFlash ? Gating::kSigmoid : Gating::kSoftmax;
  const bool mixture = b.keys.count_or("expert_count", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer = b.latent_layer(i, rope, style);
    layer.attention.scale *= static_cast<float>(magnitude * magnitude);
    b.experts_or_dense(layer, i, mixture && b.has_experts(i), {gating, false}, 0);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

void describe_plm(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer = b.latent_layer(i, rope, style);
    layer.feed_forward = b.plain_feed_forward(i, Activation::kRelu2);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

/// The factors on embeddings, branches and logits are not in the file.
void describe_minicpm3(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  b.spec.embedding_scale = 12;
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    LayerSpec layer = b.latent_layer(i, rope, style);
    layer.residual_scale = static_cast<float>(1.4 / std::sqrt(static_cast<double>(b.sizes.layers)));
    layer.feed_forward = b.gated_feed_forward(i, Activation::kSilu);
    b.spec.layers.push_back(std::move(layer));
  }
  b.output(256 / static_cast<double>(b.sizes.width));
}

}  // namespace hk::models
