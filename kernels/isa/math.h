// Exponential and its relatives for one ISA level, accurate to about two units in the last place.
//
// Part of the level sources (see vec.h).
#pragma once

#include <utility>

#include "kernels/isa/vec.h"

namespace hk::kernels {
namespace {

/// x - n * ln(2), with ln(2) in two parts: the first has few bits, so that n times it is exact.
HK_INLINE vf exp_remainder(vf x, vf n) { return fma(n, set_f(2.12194440e-4f), fma(n, set_f(-0.693359375f), x)); }
/// e^r for |r| <= ln(2) / 2: Taylor polynomial of degree 7, the next term is below 6e-9.
HK_INLINE vf exp_polynomial(vf r) {
  vf p = set_f(1.0f / 5040.0f);
  p = fma(p, r, set_f(1.0f / 720.0f));
  p = fma(p, r, set_f(1.0f / 120.0f));
  p = fma(p, r, set_f(1.0f / 24.0f));
  p = fma(p, r, set_f(1.0f / 6.0f));
  p = fma(p, r, set_f(0.5f));
  p = fma(p, r, set_f(1.0f));
  return fma(p, r, set_f(1.0f));
}
/// e^x: range reduction to |r| <= ln(2)/2, polynomial, exponent by bits.
/// Zero below -87.3 (where results would be subnormal), infinity above 88.7.
HK_INLINE vf exp_f(vf x) {
  const vf clamped = min_f(max_f(x, set_f(-87.3f)), set_f(88.7f));
  const vf n = round_even(clamped * 1.44269504088896341f);
  const vf p = exp_polynomial(exp_remainder(clamped, n));
  const vi exponent = __builtin_convertvector(n, vi);
  // two factors: n may be 128
  const vi half = exponent >> 1;
  vf y = p * as_f((half + 127) << 23) * as_f((exponent - half + 127) << 23);
  y = select(x < -87.3f, vf{}, y);
  y = select(x > 88.7f, set_f(__builtin_inff()), y);
  return select(x == x, y, x);
}

/// e^x for -87 <= x <= 88 alone: fewer operations than exp_f, which has an answer for every x.
HK_INLINE vf exp_within(vf x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: its sum with a small number has the rounded number as low bits
  const vf shifted = fma(x, set_f(1.44269504088896341f), set_f(kShift));
  const vf p = exp_polynomial(exp_remainder(x, shifted - kShift));
  return as_f(as_i(p) + (as_i(shifted) << 23));
}

/// 1 / (1 + e^-x), without the ends of exp_f: below -88 it stays at 6e-39, and NaN becomes a number.
HK_INLINE vf sigmoid_f(vf x) { return 1.0f / (1.0f + exp_within(min_f(max_f(vf{} - x, set_f(-86.0f)), set_f(88.0f)))); }
/// Absolute error below 2e-7. NaN stays.
HK_INLINE vf tanh_f(vf x) { return select(x == x, 2.0f * sigmoid_f(2.0f * x) - 1.0f, x); }

/// The lanes kBy places further, around the end.
template <int kBy>
HK_INLINE vf turn(vf v) {
#if defined(HK_ISA_AVX512)
  constexpr int n = kBy;
  return __builtin_shufflevector(v, v, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11,
                                 n + 12, n + 13, n + 14, n + 15);
#elif defined(HK_ISA_AVX2)
  return __builtin_shufflevector(v, v, kBy, kBy + 1, kBy + 2, kBy + 3, kBy + 4, kBy + 5, kBy + 6, kBy + 7);
#else
  return __builtin_shufflevector(v, v, kBy, kBy + 1, kBy + 2, kBy + 3);
#endif
}
/// Folds all lanes into one by halves; the result is in every lane. No branches, which compilers make of maxima in a
/// loop over lanes, and mispredict.
template <typename Fold>
HK_INLINE vf fold_lanes(vf v, const Fold& fold) {
  if constexpr (W > 8) v = fold(v, turn<W / 2>(v));
  if constexpr (W > 4) v = fold(v, turn<4>(v));
  v = fold(v, turn<2>(v));
  return fold(v, turn<1>(v));
}

/// One step of fold_each for two vectors: halves of kHalf lanes each are folded; a's results and b's take turns.
template <int kHalf, typename Fold, std::size_t... kLane>
HK_INLINE vf fold_halves(vf a, vf b, const Fold& fold, std::index_sequence<kLane...>) {
  constexpr int h = kHalf;
  return fold(
      __builtin_shufflevector(a, b, (kLane & h ? W + static_cast<int>(kLane) - h : static_cast<int>(kLane))...),
      __builtin_shufflevector(a, b, (kLane & h ? W + static_cast<int>(kLane) : static_cast<int>(kLane) + h)...));
}
template <int kHalf, typename Fold>
HK_INLINE void fold_step(vf* v, const Fold& fold) {
  if constexpr (kHalf > 0) {
    for (int i = 0; i < kHalf; ++i)
      v[i] = fold_halves<kHalf>(v[i], v[i + kHalf], fold, std::make_index_sequence<static_cast<std::size_t>(W)>{});
    fold_step<kHalf / 2>(v, fold);
  }
}
/// fold_lanes of W vectors, which are used up, in a third of the operations: lane i is what v[i] folds to, bit for bit.
template <typename Fold>
HK_INLINE vf fold_each(vf (&v)[W], const Fold& fold) {
  fold_step<W / 2>(v, fold);
  return v[0];
}
HK_INLINE vf sum_each(vf (&v)[W]) {
  return fold_each(v, [](vf a, vf b) HK_LAMBDA_INLINE { return a + b; });
}

/// The sum of all lanes, by halves.
HK_INLINE float fold_sum(vf v) {
  return fold_lanes(v, [](vf a, vf b) HK_LAMBDA_INLINE { return a + b; })[0];
}

/// Calls body(index, lanes) for runs of W, then once for the rest.
template <typename Body>
HK_INLINE void for_lanes(std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + W <= n; i += W) body(i, W);
  if (i < n) body(i, static_cast<int>(n - i));
}
HK_INLINE vf load_some(const float* p, int count) { return count == W ? load_f(p) : load_first(p, count); }
HK_INLINE void store_some(float* p, vf v, int count) {
  if (count == W) {
    store_f(p, v);
  } else {
    store_first(p, v, count);
  }
}

}  // namespace
}  // namespace hk::kernels
