// The second input of every layer (see per_layer_input.h).
#include "models/per_layer_input.h"

#include <cmath>

namespace hk::models {

std::size_t PerLayerInput::bytes() const {
  return embedded_.bytes() + gate_rows_.bytes() + out_rows_.bytes() + parts_buffer_.bytes() +
         looked_up_buffer_.bytes() + gate_buffer_.bytes() + out_buffer_.bytes();
}

void PerLayerInput::make(std::span<const engine::TokenId> tokens, const Rows& embeddings) {
  const PerLayerInputSpec& spec = stage_.spec.per_layer_input;
  parts_ = parts_buffer_.shape(tokens.size(), spec.projection.rows);
  embedded_.begin(embeddings, {&spec.projection});
  for_rows(stage_.pool, tokens.size(), [&](std::size_t i) { embedded_.prepare_row(i); });
  stage_.products.add(spec.projection, embedded_, parts_);
  stage_.products.run("layer inputs");

  const engine::StageTimer timer("layer inputs");
  const Rows looked_up = looked_up_buffer_.shape(tokens.size(), parts_.cols);
  const float both = std::sqrt(0.5F);  // two inputs of about the same length
  for_rows(stage_.pool, tokens.size(), [&](std::size_t i) {
    spec.table.decode(spec.table.data + static_cast<std::size_t>(tokens[i]) * spec.table.row_bytes, looked_up[i],
                      parts_.cols);
    for (std::size_t first = 0; first < parts_.cols; first += spec.width)
      stage_.norm(spec.projection_norm, parts_[i] + first, spec.width, parts_[i] + first);
    stage_.kernels.add_scaled(parts_[i], looked_up[i], spec.table_scale, parts_.cols);
    stage_.kernels.scale(parts_[i], both, parts_.cols);
  });
}

Rows PerLayerInput::use(const PerLayerUseSpec& spec, std::size_t index, const Rows& x) {
  const std::size_t width = spec.gate.rows;
  const Rows gate = gate_buffer_.shape(x.n, width);
  gate_rows_.begin(x, {&spec.gate});
  for_rows(stage_.pool, x.n, [&](std::size_t i) { gate_rows_.prepare_row(i); });
  stage_.products.add(spec.gate, gate_rows_, gate);
  stage_.products.run("layer input");

  out_rows_.begin(gate, {&spec.out});
  for_rows(stage_.pool, x.n, [&](std::size_t i) {
    stage_.kernels.gelu_mul(gate[i], parts_[i] + index * width, width, gate[i]);
    out_rows_.prepare_row(i);
  });
  const Rows out = out_buffer_.shape(x.n, stage_.spec.width);
  stage_.products.add(spec.out, out_rows_, out);
  stage_.products.run("layer input");
  for_rows(stage_.pool, x.n, [&](std::size_t i) { stage_.norm(spec.norm, out[i], out.cols, out[i]); });
  return out;
}

}  // namespace hk::models
