// The row before each row of a sequence, remembered between calls.
//
// Layer: models.
#pragma once

#include <algorithm>
#include <vector>

#include "models/stage.h"

namespace hk::models {

class TokenShift {
 public:
  /// Finds the row before each row of `x`; those before a segment's first lie in the state at `offset`.
  void begin(const Stage& stage, const Rows& x, std::size_t offset) {
    before_.resize(x.n);
    for (const Segment& segment : stage.segments) {
      for (std::size_t r = 0; r < segment.rows; ++r) {
        const std::size_t i = segment.first_row + r;
        before_[i] = r == 0 ? segment.sequence->state_before(offset) : x[i - 1];
      }
    }
  }
  /// Remembers each segment's last row; after this the row before its first may be gone.
  void end(const Stage& stage, const Rows& x, std::size_t offset) const {
    for (const Segment& segment : stage.segments) {
      if (segment.rows != 0)
        std::copy_n(x[segment.first_row + segment.rows - 1], x.cols, segment.sequence->state_after(offset));
    }
  }
  /// out = x + (the row before - x) * part, channel by channel.
  void mix(const Rows& x, std::size_t i, const float* part, float* out) const {
    for (std::size_t c = 0; c < x.cols; ++c) out[c] = x[i][c] + (before_[i][c] - x[i][c]) * part[c];
  }

 private:
  std::vector<const float*> before_;
};

}  // namespace hk::models
