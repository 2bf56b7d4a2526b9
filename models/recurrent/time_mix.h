// The time mixing of RWKV 6 and 7 as a part of a layer.
//
// Layer: models.
#pragma once

#include <array>

#include "models/recurrent/shift.h"
#include "models/stage.h"

namespace hk::models {

class TimeMixer {
 public:
  explicit TimeMixer(Stage& stage);

  /// From normalised rows to rows of the model's width, valid until the next call. Layers run in order.
  Rows run(const TimeMixSpec& spec, const Rows& input);

  std::size_t bytes() const;

 private:
  /// Rows on their way to matrices.
  struct Lane {
    explicit Lane(const kernels::KernelTable& kernels) : prepared(kernels) {}
    Rows shape(std::size_t n, std::size_t cols) { return rows = buffer.shape(n, cols); }
    RowBuffer buffer;
    Rows rows;
    PreparedRows prepared;
  };
  enum LowPart : std::uint8_t { kDecayPart, kRatePart, kValuePart, kGatePart, kLowParts };

  void mix_inputs(const TimeMixSpec& spec, const Rows& input);
  void mix_more(const TimeMixSpec& spec, const Rows& input);
  void project(const TimeMixSpec& spec);
  void prepare_heads(const TimeMixSpec& spec, std::size_t i);
  void step(const TimeMixSpec& spec, const Segment& segment, std::size_t row, std::size_t head);
  void finish_row(const TimeMixSpec& spec, std::size_t i);

  Stage& stage_;
  TokenShift shift_;
  std::vector<Lane> inputs_, low_;  // by TimeMixSpec::Input and LowPart
  Lane all_, parts_, mixed_;
  std::array<RowBuffer, kLowParts> up_buffers_;
  std::array<Rows, kLowParts> up_;
  RowBuffer more_buffer_, receptance_buffer_, key_buffer_, value_buffer_, gate_buffer_, first_value_buffer_,
      removed_buffer_, known_buffer_, out_buffer_;
  Rows more_, receptance_, key_, value_, gate_, first_value_, removed_, known_;
};

}  // namespace hk::models
