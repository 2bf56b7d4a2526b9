// Words of 16 bits in memory as vectors of floats, and back.
//
// Part of the level sources (see vec.h, which has the conversions of binary16).
#pragma once

#include "kernels/isa/vec.h"

namespace hk::kernels {
namespace {

typedef std::uint16_t vword __attribute__((vector_size(2 * W)));
typedef std::uint16_t vword_unaligned __attribute__((vector_size(2 * W), aligned(1), may_alias));

HK_INLINE vword load_words(const void* p) { return *static_cast<const vword_unaligned*>(p); }
HK_INLINE void store_words(void* p, vword v) { *static_cast<vword_unaligned*>(p) = v; }

/// A bf16 number is the upper half of a float.
HK_INLINE vf load_bf16(const void* p) {
  return as_f(reinterpret_cast<vi>(__builtin_convertvector(load_words(p), vu) << 16));
}
#if defined(HK_ISA_AVX512)
/// W / 2 floats each from two places.
HK_INLINE vf load_f_pair(const void* a, const void* b) {
  const auto half = [](const void* p) HK_LAMBDA_INLINE { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); };
  return (vf)_mm512_inserti64x4(_mm512_castsi256_si512(half(a)), half(b), 1);
}
HK_INLINE __m256i load_words_pair(const void* a, const void* b) {
  const auto half = [](const void* p) HK_LAMBDA_INLINE { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(half(a)), half(b), 1);
}
HK_INLINE vf load_half_pair(const void* a, const void* b) { return (vf)_mm512_cvtph_ps(load_words_pair(a, b)); }
HK_INLINE vf load_bf16_pair(const void* a, const void* b) {
  return as_f((vi)_mm512_cvtepu16_epi32(load_words_pair(a, b)) << 16);
}
#endif
/// Nearest, ties to even; a NaN keeps its upper half and becomes quiet.
HK_INLINE void store_bf16(void* p, vf v) {
  const vi bits = as_i(v);
  const vi rounded = shr(bits + 0x7FFF + (shr(bits, 16) & 1), 16);
  const vi is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  const vi word = (is_nan & (shr(bits, 16) | 0x40)) | (~is_nan & rounded);
  store_words(p, __builtin_convertvector(reinterpret_cast<vu>(word), vword));
}

}  // namespace
}  // namespace hk::kernels
