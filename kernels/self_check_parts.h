// What the files of the self check share: made-up values, the comparison with the right answer, the three parts.
//
// Layer: kernels, part of self_check.cpp and its siblings only.
#pragma once

#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/quant/sample_blocks.h"
#include "kernels/self_check.h"

namespace hk::kernels::check {

using Result = std::optional<Disagreement>;

std::optional<Disagreement> matrices(const KernelTable& table);
std::optional<Disagreement> vectors(const KernelTable& table);
std::optional<Disagreement> attention(const KernelTable& table);

/// Values around zero, mostly small, as activations are.
inline std::vector<float> values(std::size_t n, SampleRandom& random, float scale = 1.0F) {
  std::vector<float> x(n);
  for (float& v : x) v = scale * (random.between(-1, 1) + random.between(-1, 1) + random.between(-1, 1));
  return x;
}

/// Nothing when `found` lies within `tolerance` of `expected`; a NaN never does.
inline Result compare(const char* kernel, const std::string& place, double found, double expected, double tolerance) {
  if (std::fabs(found - expected) <= tolerance) return std::nullopt;
  char text[96];
  std::snprintf(text, sizeof text, ": %.9g instead of %.9g", found, expected);
  return Disagreement{kernel, place + text};
}

/// Element by element; `tolerance` is relative to the expected value, with `floor` below it. What stands behind the
/// results must still hold `guard`.
inline constexpr float kGuard = -12345.0F;
inline Result compare_all(const char* kernel, const std::vector<float>& found, const std::vector<double>& expected,
                          double tolerance, double floor) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string place = "element " + std::to_string(i);
    if (i >= expected.size()) {
      if (found[i] != kGuard) return Disagreement{kernel, place + " lies past the end and was written"};
    } else if (auto wrong = compare(kernel, place, found[i], expected[i], tolerance * std::fabs(expected[i]) + floor)) {
      return wrong;
    }
  }
  return std::nullopt;
}

}  // namespace hk::kernels::check
