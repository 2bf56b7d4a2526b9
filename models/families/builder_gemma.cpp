// The building blocks of late Gemma models (see builder.h).
#include <fmt/format.h>

#include <cmath>

#include "models/families/builder.h"

namespace hk::models {

void Builder::per_layer_input() {
  PerLayerInputSpec& p = spec.per_layer_input;
  p.width = keys.count_or("embedding_length_per_layer_input", 0);
  if (p.width == 0) return;
  const std::size_t all = all_layers_ * p.width;
  p.table = weights.table("per_layer_token_embd", all);
  if (p.table.rows < spec.vocab_size)
    keys.refuse("per_layer_token_embd.weight", fmt::format("of {} rows", p.table.rows),
                fmt::format("a row for each of the {} tokens", spec.vocab_size));
  p.table_scale = std::sqrt(static_cast<float>(p.width));
  p.projection = weights.matrix("per_layer_model_proj", all, sizes.width);
  p.projection.scale /= std::sqrt(static_cast<float>(sizes.width));
  p.projection_norm = norm("per_layer_proj_norm", p.width);
}

void Builder::per_layer_use(LayerSpec& layer, std::size_t index) {
  const std::size_t width = spec.per_layer_input.width;
  if (width == 0) return;
  layer.per_layer.gate = weights.matrix(name(index, "inp_gate"), width, sizes.width);
  layer.per_layer.out = weights.matrix(name(index, "proj"), sizes.width, width);
  layer.per_layer.norm = norm(name(index, "post_norm"), sizes.width);
}

std::pair<std::size_t, std::size_t> Builder::full_and_local_ropes() {
  const RopeSettings full = rope_settings();
  RopeSettings local = full;
  local.base = keys.positive_or("rope.freq_base_swa", 10000);
  local.scaling = RopeScaling::kNone;
  local.factor = 1;
  const std::size_t full_rope = rope(full);
  return {full_rope, rope(local)};
}

std::vector<std::optional<std::size_t>> Builder::shared_kv_layers(const std::vector<bool>& windowed,
                                                                  std::size_t usual) const {
  std::vector<std::optional<std::size_t>> from(sizes.layers);
  const std::size_t shared = keys.count_or("attention.shared_kv_layers", usual);
  if (shared > sizes.layers)
    keys.refuse(keys.full("attention.shared_kv_layers"), fmt::format("{}", shared),
                fmt::format("at most the {} layers", sizes.layers));
  const std::size_t first = sizes.layers - shared;
  std::optional<std::size_t> last_of[2];  // full, windowed
  for (std::size_t i = 0; i < first; ++i) last_of[windowed[i] ? 1 : 0] = i;
  for (std::size_t i = first; i < sizes.layers; ++i) {
    from[i] = last_of[windowed[i] ? 1 : 0];
    if (!from[i])
      keys.refuse(keys.full("attention.shared_kv_layers"), fmt::format("{}", shared),
                  fmt::format("so many that an earlier layer of the kind of layer {} has a cache", i));
  }
  return from;
}

}  // namespace hk::models
