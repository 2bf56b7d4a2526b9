// The machine's limits at one moment, and the least time that some work takes within them.
//
// Layer: cli.
#pragma once

#include <span>

#include "engine/runtime/profile.h"
#include "engine/runtime/roofline.h"

namespace hk::cli {

/// 10^9 a second.
struct BenchPeaks {
  double read = 0;
  double int8_dot = 0;
  double f32_fma = 0;
  /// The least time that this work can take.
  double seconds_for(const engine::StageWork& work) const;
};

/// One run of each kind, with the threads that take part now.
BenchPeaks measure_peaks(engine::RooflineProbe& probe);
/// The middle of several, kind by kind; zeros for none.
BenchPeaks middle_of(std::span<const BenchPeaks> peaks);

}  // namespace hk::cli
