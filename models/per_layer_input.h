// The second input of every layer that small Gemma models have: made once a chunk, taken in at the end of each layer.
//
// Layer: models.
#pragma once

#include <span>

#include "engine/generate/model.h"
#include "models/stage.h"

namespace hk::models {

class PerLayerInput {
 public:
  explicit PerLayerInput(Stage& stage)
      : stage_(stage), embedded_(stage.kernels), gate_rows_(stage.kernels), out_rows_(stage.kernels) {}

  /// The parts of all layers, from the tokens and their embeddings as they enter the first layer.
  void make(std::span<const engine::TokenId> tokens, const Rows& embeddings);
  /// What layer `index` adds to x, valid until the next call.
  Rows use(const PerLayerUseSpec& spec, std::size_t index, const Rows& x);

  std::size_t bytes() const;

 private:
  Stage& stage_;
  PreparedRows embedded_, gate_rows_, out_rows_;
  RowBuffer parts_buffer_, looked_up_buffer_, gate_buffer_, out_buffer_;
  Rows parts_;
};

}  // namespace hk::models
