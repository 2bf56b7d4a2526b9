// RWKV's channel mixing, which stands in a feed-forward's place.
//
// Layer: models.
#pragma once

#include "models/recurrent/shift.h"
#include "models/stage.h"

namespace hk::models {

class ChannelMixer {
 public:
  explicit ChannelMixer(Stage& stage)
      : stage_(stage), key_rows_(stage.kernels), receptance_rows_(stage.kernels), inner_rows_(stage.kernels) {}

  /// From normalised rows to rows of the model's width, valid until the next call.
  Rows run(const ChannelMixSpec& spec, const Rows& input);

  std::size_t bytes() const;

 private:
  Stage& stage_;
  TokenShift shift_;
  PreparedRows key_rows_, receptance_rows_, inner_rows_;
  RowBuffer key_buffer_, receptance_buffer_, inner_buffer_, gate_buffer_, out_buffer_;
};

}  // namespace hk::models
