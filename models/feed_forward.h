// The dense feed-forward of a layer: gate and up, activation, down.
//
// Layer: models.
#pragma once

#include "models/stage.h"

namespace hk::models {

class FeedForward {
 public:
  explicit FeedForward(Stage& stage) : stage_(stage), inner_(stage.kernels) {}

  /// From prepared input rows to rows of the model's width, valid until the next call.
  Rows run(const FeedForwardSpec& spec, const PreparedRows& input);

  /// The same in two steps, so that other products can run along: adds gate and up; then activates and adds down.
  void add_up(const FeedForwardSpec& spec, const PreparedRows& input);
  Rows add_down(const FeedForwardSpec& spec);

  std::size_t bytes() const { return gate_buffer_.bytes() + up_buffer_.bytes() + out_buffer_.bytes() + inner_.bytes(); }

 private:
  Stage& stage_;
  PreparedRows inner_;
  RowBuffer gate_buffer_, up_buffer_, out_buffer_;
  Rows gate_, up_;
};

}  // namespace hk::models
