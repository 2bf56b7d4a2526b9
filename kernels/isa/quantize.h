// Rounding floats to int8 codes under a common scale, by one rule on every level.
//
// Part of the level sources (see vec.h). Codes are the same on all levels: they come from multiplications and one
// rounding, without fused arithmetic.
#pragma once

#include "kernels/isa/math.h"

namespace hk::kernels {
namespace {

typedef std::int8_t vcode __attribute__((vector_size(W)));
typedef std::int8_t vcode_unaligned __attribute__((vector_size(W), aligned(1), may_alias));

/// Lanes from -128 to 127, a byte each.
HK_INLINE void store_codes(void* p, vi v) { *static_cast<vcode_unaligned*>(p) = __builtin_convertvector(v, vcode); }

/// Below it a reciprocal is no longer safe and values no longer matter.
inline constexpr float kSmallestPeak = 0x1p-110f;

/// The larger of two magnitudes: they are in the order of their bits, and what is no number lies above them all.
HK_INLINE vf larger_magnitude(vf a, vf b) { return select(as_i(a) > as_i(b), a, b); }

/// In each lane the largest magnitude of n / W values.
HK_INLINE vf peaks_of(const float* x, int n) {
  vf largest{};
  for (int i = 0; i < n; i += W) largest = larger_magnitude(abs_f(load_f(x + i)), largest);
  return largest;
}
/// Largest magnitude of `n` values (a multiple of 16). `*poison` is NaN when one of them is NaN or infinite, else 0:
/// added to a scale, it makes them show in the results instead of vanishing.
HK_INLINE float peak_of(const float* x, int n, float* poison) {
  const float peak = fold_lanes(peaks_of(x, n), larger_magnitude)[0];
  *poison = peak - peak;
  return peak;
}

/// Whole numbers for scaled values; 0 for what is no number.
HK_INLINE vf codes_of(vf scaled) {
  const vf rounded = round_even(scaled);
  return select(abs_f(rounded) <= 127.0f, rounded, vf{});
}

/// Quantizes `n` values (a multiple of 16) to codes under one scale, which it returns; NaN as in peak_of.
HK_INLINE float quantize_group(const float* x, int n, std::int8_t* codes) {
  float poison;
  const float peak = peak_of(x, n, &poison);
  const bool zero = !(peak > kSmallestPeak);
  const float inverse = zero ? 0.0f : 127.0f / peak;
  vf along{}, squares{};
  for (int i = 0; i < n; i += W) {
    // the values are brought near 1 first: their products cannot overflow or vanish
    const vf scaled = load_f(x + i) * inverse;
    const vf kept = codes_of(scaled);
    along = fma(scaled, kept, along);
    squares = fma(kept, kept, squares);
    store_codes(codes + i, __builtin_convertvector(kept, vi));
  }
  if (zero) return poison;
  if (n > 32) return peak / 127.0f + poison;
  return peak / 127.0f * (fold_sum(along) / fold_sum(squares)) + poison;
}

/// The same under a scale that is a bf16 number, not below peak / 127: what is kept for long has a short scale of any
/// size.
HK_INLINE float quantize_short_scale(const float* x, int n, std::int8_t* codes) {
  float poison;
  const float peak = peak_of(x, n, &poison);
  const bool zero = !(peak > kSmallestPeak);
  const float wide = peak / 127.0f;
  std::uint32_t bits;
  __builtin_memcpy(&bits, &wide, 4);
  bits = (bits + 0xFFFF) & 0xFFFF0000;
  float scale;
  __builtin_memcpy(&scale, &bits, 4);
  const float inverse = zero ? 0.0f : 1.0f / scale;
  for (int i = 0; i < n; i += W) {
    store_codes(codes + i, __builtin_convertvector(codes_of(load_f(x + i) * inverse), vi));
  }
  return (zero ? 0.0f : scale) + poison;
}

}  // namespace
}  // namespace hk::kernels
