// The gated short convolution of LFM2 as a part of a layer.
//
// Layer: models. The projected input holds b, c and x; c times the convolution of b * x goes to the output matrix.
#pragma once

#include "models/recurrent/convolution.h"
#include "models/stage.h"

namespace hk::models {

class ShortConvolutionMixer {
 public:
  explicit ShortConvolutionMixer(Stage& stage) : stage_(stage), mixed_rows_(stage.kernels) {}

  /// From rows prepared for `spec.in` to rows of the model's width, valid until the next call.
  Rows run(const ShortConvolutionSpec& spec, const PreparedRows& input);

  std::size_t bytes() const {
    return mixed_rows_.bytes() + in_buffer_.bytes() + gated_buffer_.bytes() + mixed_buffer_.bytes() +
           out_buffer_.bytes();
  }

 private:
  Stage& stage_;
  PreparedRows mixed_rows_;
  RowBuffer in_buffer_, gated_buffer_, mixed_buffer_, out_buffer_;
};

}  // namespace hk::models
