// The gated delta rule as a part of a layer: of Qwen3-Next and Qwen3.5, and with a memory that forgets by channel, of
// Kimi Linear.
//
// Layer: models.
#pragma once

#include "models/stage.h"

namespace hk::models {

class DeltaMixer {
 public:
  explicit DeltaMixer(Stage& stage)
      : stage_(stage), alpha_low_(stage.kernels), gate_low_(stage.kernels), mixed_rows_(stage.kernels) {}

  /// From rows prepared for qkv, gate and beta and alpha to rows of the model's width, valid until the next call.
  Rows run(const DeltaSpec& spec, const PreparedRows& input);

  std::size_t bytes() const;

 private:
  void project(const DeltaSpec& spec, const PreparedRows& input);
  void project_low(const DeltaSpec& spec);
  void prepare_heads(const DeltaSpec& spec, std::size_t i);
  void step(const DeltaSpec& spec, const Segment& segment, std::size_t row, std::size_t head);

  Stage& stage_;
  PreparedRows alpha_low_, gate_low_, mixed_rows_;
  RowBuffer alpha_low_buffer_, gate_low_buffer_, qkv_buffer_, conv_buffer_, gate_buffer_, beta_buffer_, alpha_buffer_,
      both_buffer_, error_buffer_, mixed_buffer_, out_buffer_;
  Rows qkv_, conv_, gate_, beta_, alpha_, both_, error_, mixed_;
};

}  // namespace hk::models
