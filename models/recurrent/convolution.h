// Short causal convolution along a sequence, each channel alone, with its last inputs as state.
//
// Layer: models. State of a sequence: [kernel - 1][channels], the oldest input first.
#pragma once

#include <cstddef>

#include "models/attend.h"
#include "models/rows.h"

namespace hk::models {

/// out = convolution of in, for channels [first, first + n) of one segment's rows; updates the state of those channels.
/// `in` and `out` are different rows.
void convolve(const ConvolutionSpec& spec, const Segment& segment, const Rows& in, const Rows& out, std::size_t first,
              std::size_t n);

/// Channels that one task takes: whole cache lines, so that tasks do not write to the same one.
inline constexpr std::size_t kChannelsATask = 256;

}  // namespace hk::models
