// Several copies of the residual stream, of which a layer computes one: predicted from all before the layer, and all
// corrected by what it found.
//
// Layer: models. The mechanism of Gemma 3n; its layers work on the stream that `predict` hands out.
#pragma once

#include "models/stage.h"

namespace hk::models {

class Streams {
 public:
  explicit Streams(Stage& stage) : stage_(stage), x_rows_(stage.kernels), router_rows_(stage.kernels) {}

  /// Makes the other streams from the embeddings, which are the first.
  void start(const Rows& x);
  /// x becomes the prediction of the first stream for a layer.
  void predict(const StreamsUseSpec& spec, const Rows& x);
  /// All predictions are moved by what the layer made of x; x becomes the first stream times the layer's scale.
  void correct(const StreamsUseSpec& spec, const Rows& x);
  /// Adds to all streams but the first.
  void add_to_others(const Rows& part);
  /// x becomes the mean of all streams, brought to the length of the first.
  void finish(const Rows& x);

  std::size_t bytes() const;

 private:
  std::size_t count() const { return stage_.spec.streams.count; }
  float* stream(std::size_t index, std::size_t row) const { return streams_[index * rows_ + row]; }
  Rows all_of(std::size_t index) const;
  void weigh(const StreamsUseSpec& spec, const Rows& x);
  void match_length(const float* like, float* x) const;

  Stage& stage_;
  PreparedRows x_rows_, router_rows_;
  RowBuffer streams_buffer_, predicted_buffer_, router_buffer_, weights_buffer_, other_buffer_;
  std::size_t rows_ = 0;
  Rows streams_;  // stream after stream
  Rows weights_;  // of each row, what its router says of each stream
};

}  // namespace hk::models
