// What a handful of repeated measurements says: centre, spread, and whether two things differ.
//
// Layer: engine/runtime, standard library only. Nothing assumes a bell curve where it is not needed: on a shared
// machine one run in ten is far off. A comparison uses pairs of runs taken right after one another, so that what
// disturbs both cancels.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hk::engine {

struct Interval {
  double low = 0;
  double high = 0;
};

struct Spread {
  std::size_t runs = 0;
  double mean = 0;
  double deviation = 0;  ///< sample standard deviation; 0 for one run
  double median = 0;
  /// Holds the true median with at least 95 % when six or more runs were made (order statistics); lowest and highest
  /// for fewer.
  Interval interval;
};
/// All zero without values.
Spread spread_of(std::vector<double> values);

struct PairedRatio {
  double ratio = 1;   ///< geometric mean of second / first
  Interval interval;  ///< 95 %, by Student's t over the logarithms; 0 to infinity for fewer than two pairs
  /// The interval does not contain 1.
  bool differs() const { return interval.low > 1 || interval.high < 1; }
};
/// Values must be positive; the shorter list decides how many pairs there are.
PairedRatio paired_ratio(std::span<const double> first, std::span<const double> second);

}  // namespace hk::engine
