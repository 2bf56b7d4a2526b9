// The dense feed-forward of a layer: gate and up, activation, down.
//
// Layer: models. For a prompt a worker takes some rows of gate and up through the activation to the record that `down`
// multiplies while they lie in its cache; neither product goes to memory. What comes out is the same.
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

  std::size_t bytes() const;

 private:
  bool runs_together(const FeedForwardSpec& spec, std::size_t n) const;
  void make_inner(const FeedForwardSpec& spec, const PreparedRows& input);

  Stage& stage_;
  PreparedRows inner_;
  RowBuffer gate_buffer_, up_buffer_, out_buffer_;
  Rows gate_, up_;
  std::vector<engine::AlignedBuffer<float>> parts_;  ///< of each worker: some columns of gate, then of up, of some rows
};

}  // namespace hk::models
