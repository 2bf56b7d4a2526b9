// The selective scans of Mamba 1 and 2 as a part of a layer.
//
// Layer: models.
#pragma once

#include "models/stage.h"

namespace hk::models {

class ScanMixer {
 public:
  explicit ScanMixer(Stage& stage) : stage_(stage), inner_rows_(stage.kernels), dt_rows_(stage.kernels) {}

  /// From rows prepared for `spec.in` to rows of the model's width, valid until the next call.
  Rows run(const ScanSpec& spec, const PreparedRows& input);

  std::size_t bytes() const;

 private:
  void scan_heads(const ScanSpec& spec);     // Mamba-2
  void scan_channels(const ScanSpec& spec);  // Mamba-1
  void project_again(const ScanSpec& spec);
  void step_head(const ScanSpec& spec, const Segment& segment, std::size_t row, std::size_t head);
  void step_channels(const ScanSpec& spec, const Segment& segment, std::size_t row, std::size_t first,
                     std::size_t count);
  void finish_row(const ScanSpec& spec, std::size_t i);

  Stage& stage_;
  PreparedRows inner_rows_, dt_rows_;
  RowBuffer in_buffer_, before_buffer_, conv_buffer_, second_buffer_, dt_buffer_, low_buffer_, mixed_buffer_,
      out_buffer_;
  Rows in_, conv_, second_, dt_, mixed_;
};

}  // namespace hk::models
