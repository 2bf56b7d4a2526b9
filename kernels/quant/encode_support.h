// Roundings, extremes and the block loop shared by the quantizers.
//
// Layer: kernels, private to kernels/quant. Roundings clamp before they convert, so that no float (NaN, infinity) makes
// the conversion to an integer undefined.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace hk::kernels {

/// Calls One(values of the block, block) for every block.
template <typename Block, void (*One)(const float*, Block&)>
void encode_each(const float* values, void* blocks, std::size_t n) {
  auto* block = static_cast<Block*>(blocks);
  for (std::size_t done = 0; done < n; done += Block::kElements) One(values + done, *block++);
}

/// Nearest integer, ties to even, within low..high; NaN is low. |low|, |high| < 2^22.
static inline int round_even(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  constexpr float kUnit = 12582912.0f;  // 1.5 * 2^23: the sum has no fraction bits left
  return static_cast<int>((value + kUnit) - kUnit);
}

/// Nearest integer, ties away from zero, within low..high; NaN is low.
static inline int round_away(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  const int whole = static_cast<int>(value);
  const float rest = value - static_cast<float>(whole);  // exact
  return rest >= 0.5f ? whole + 1 : rest <= -0.5f ? whole - 1 : whole;
}

/// Integer part within low..high; NaN is low.
static inline int truncate(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  return static_cast<int>(value);
}

/// 1 / d, or 0 for d == 0.
static inline float inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

/// Value of the first element with the largest magnitude, sign included; 0 for none.
static inline float first_largest(const float* x, std::size_t n) {
  float largest = 0.0f;
  float magnitude = 0.0f;
  for (std::size_t i = 0; i < n; ++i) {
    const float a = std::fabs(x[i]);
    if (a > magnitude) {
      magnitude = a;
      largest = x[i];
    }
  }
  return largest;
}

static inline float largest_magnitude(const float* x, std::size_t n) { return std::fabs(first_largest(x, n)); }

}  // namespace hk::kernels
