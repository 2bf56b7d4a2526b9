// The machine's limits (see peaks.h).
#include "cli/bench/peaks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/runtime/statistics.h"

namespace hk::cli {

using engine::Cores;
using engine::PeakKind;

double BenchPeaks::seconds_for(const engine::StageWork& work) const {
  constexpr double kGiga = 1e9;
  const auto time = [](std::uint64_t amount, double rate) {
    return rate > 0 ? static_cast<double>(amount) / rate / kGiga : 0.0;
  };
  return std::max(time(work.bytes, read), time(work.integer_macs, int8_dot) + time(work.float_macs, f32_fma));
}

BenchPeaks measure_peaks(engine::RooflineProbe& probe) {
  return {probe.run(PeakKind::kRead, Cores::kAll), probe.run(PeakKind::kInt8Dot, Cores::kAll),
          probe.run(PeakKind::kF32Fma, Cores::kAll)};
}

BenchPeaks middle_of(std::span<const BenchPeaks> peaks) {
  const auto middle = [&](double BenchPeaks::*member) {
    std::vector<double> values;
    for (const BenchPeaks& p : peaks) values.push_back(p.*member);
    return engine::spread_of(std::move(values)).median;
  };
  return {middle(&BenchPeaks::read), middle(&BenchPeaks::int8_dot), middle(&BenchPeaks::f32_fma)};
}

}  // namespace hk::cli
