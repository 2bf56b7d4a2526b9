// Order statistics and paired comparison (see statistics.h).
#include "engine/runtime/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hk::engine {
namespace {

constexpr double kOutside = 0.05;

/// Quantile of Student's t that leaves 2.5 % above, for `freedom` degrees of freedom.
double student_t(std::size_t freedom) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                               2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                               2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  constexpr std::size_t kRows = sizeof kTable / sizeof *kTable;
  if (freedom <= kRows) return kTable[freedom - 1];
  // Beyond the table, the first two terms of the expansion around the normal quantile: right to three digits.
  constexpr double z = 1.95996;
  return z + (z * z * z + z) / (4.0 * static_cast<double>(freedom));
}

/// How many values may be left out at each end so that what lies between still holds the median with 95 %.
std::size_t left_out(std::size_t n) {
  // Either end misses the median when fewer than k + 1 of n coin tosses fall on its side.
  double term = std::pow(0.5, static_cast<double>(n)), below = term;
  std::size_t k = 0;
  while (2 * (below + term * static_cast<double>(n - k) / static_cast<double>(k + 1)) <= kOutside) {
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    below += term;
    ++k;
  }
  return k;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread spread;
  const std::size_t n = spread.runs = values.size();
  if (n == 0) return spread;
  std::sort(values.begin(), values.end());
  spread.median = n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
  for (const double v : values) spread.mean += v / static_cast<double>(n);
  if (n > 1) {
    double sum = 0;
    for (const double v : values) sum += (v - spread.mean) * (v - spread.mean);
    spread.deviation = std::sqrt(sum / static_cast<double>(n - 1));
  }
  constexpr std::size_t kMostExact = 1000;  // 2^-n stays a normal number
  const std::size_t skip = n <= kMostExact ? left_out(n) : n / 2 - static_cast<std::size_t>(std::sqrt(n)) - 1;
  spread.interval = {values[skip], values[n - 1 - skip]};
  return spread;
}

PairedRatio paired_ratio(std::span<const double> first, std::span<const double> second) {
  const std::size_t n = std::min(first.size(), second.size());
  PairedRatio result;
  result.interval = {0, std::numeric_limits<double>::infinity()};
  if (n == 0) return result;
  std::vector<double> logs(n);
  for (std::size_t i = 0; i < n; ++i) logs[i] = std::log(second[i] / first[i]);
  const Spread spread = spread_of(logs);
  result.ratio = std::exp(spread.mean);
  if (n < 2) return result;
  const double half = student_t(n - 1) * spread.deviation / std::sqrt(static_cast<double>(n));
  result.interval = {std::exp(spread.mean - half), std::exp(spread.mean + half)};
  return result;
}

}  // namespace hk::engine
