// Short causal convolution along a sequence (see convolution.h).
#include "models/recurrent/convolution.h"

#include <algorithm>

namespace hk::models {

void convolve(const ConvolutionSpec& spec, const Segment& segment, const Rows& in, const Rows& out, std::size_t first,
              std::size_t n) {
  const std::size_t past = spec.kernel - 1;
  const float* before = segment.sequence->state_before(spec.state) + first;
  float* after = segment.sequence->state_after(spec.state) + first;
  // input `back` steps before row r, which may lie in the state
  const auto input = [&](std::size_t r, std::size_t back) -> const float* {
    return back <= r ? in[segment.first_row + r - back] + first : before + (past + r - back) * spec.channels;
  };
  for (std::size_t r = 0; r < segment.rows; ++r) {
    float* sum = out[segment.first_row + r] + first;
    if (spec.bias == nullptr) {
      std::fill_n(sum, n, 0.0F);
    } else {
      std::copy_n(spec.bias + first, n, sum);
    }
    for (std::size_t tap = 0; tap < spec.kernel; ++tap) {
      const float* x = input(r, past - tap);
      const float* weight = spec.weights + tap * spec.channels + first;
      for (std::size_t c = 0; c < n; ++c) sum[c] += weight[c] * x[c];
    }
  }
  // Oldest first: an entry that moves within the state is read before it is overwritten.
  for (std::size_t j = 0; j < past; ++j) {
    const std::size_t from = j + segment.rows;  // counted from the oldest entry of the old state
    const float* x = from < past ? before + from * spec.channels : in[segment.first_row + from - past] + first;
    if (x != after + j * spec.channels) std::copy_n(x, n, after + j * spec.channels);
  }
}

}  // namespace hk::models
