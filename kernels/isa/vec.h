// The vector vocabulary of one ISA level: W lanes of 32 bits and the few operations that kernels need beyond + - * & |
// ^.
//
// Included only by the sources that are compiled once per level (kernels/levels.cmake sets HK_LEVEL and HK_ISA_*).
// Everything here has internal linkage, so that no inline function compiled for a newer CPU can be merged into the rest
// of the program.
//
// Lanes are weight rows in the matrix kernels: lane r of every vector belongs to row r. A `vi` is W x int32, often read
// as W x 4 bytes (four neighbouring elements of each row, "a step"); a `vf` is W x float. Plain arithmetic comes from
// the compiler's vector types and reads the same on every level.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(HK_ISA_AVX512) || defined(HK_ISA_AVX2)
#include <immintrin.h>
#elif defined(HK_ISA_NEON)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hk::kernels {
namespace {

#if defined(HK_ISA_AVX512)
inline constexpr int W = 16;
#elif defined(HK_ISA_AVX2)
inline constexpr int W = 8;
#else
inline constexpr int W = 4;
#endif

typedef std::int32_t vi __attribute__((vector_size(4 * W)));
typedef std::uint32_t vu __attribute__((vector_size(4 * W)));
typedef std::int16_t vi16 __attribute__((vector_size(4 * W)));
typedef std::int8_t vi8 __attribute__((vector_size(4 * W)));
typedef std::uint8_t vu8 __attribute__((vector_size(4 * W)));
typedef float vf __attribute__((vector_size(4 * W)));
typedef std::int32_t vi_unaligned __attribute__((vector_size(4 * W), aligned(1), may_alias));
typedef float vf_unaligned __attribute__((vector_size(4 * W), aligned(1), may_alias));

/// Sixteen bytes of one row.
typedef std::int32_t v16 __attribute__((vector_size(16)));
typedef std::int32_t v16_unaligned __attribute__((vector_size(16), aligned(1), may_alias));

#define HK_INLINE __attribute__((always_inline)) inline
#define HK_NOINLINE __attribute__((noinline))
#define HK_LAMBDA_INLINE __attribute__((always_inline))

HK_INLINE vi load_i(const void* p) { return *static_cast<const vi_unaligned*>(p); }
HK_INLINE vf load_f(const void* p) { return *static_cast<const vf_unaligned*>(p); }
HK_INLINE void store_i(void* p, vi v) { *static_cast<vi_unaligned*>(p) = v; }
HK_INLINE void store_f(void* p, vf v) { *static_cast<vf_unaligned*>(p) = v; }
HK_INLINE std::int32_t load32(const void* p) {
  std::int32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}
HK_INLINE std::uint16_t load16(const void* p) {
  std::uint16_t v;
  __builtin_memcpy(&v, p, 2);
  return v;
}
HK_INLINE vi set_i(std::int32_t x) { return x - vi{}; }
HK_INLINE vf set_f(float x) { return x - vf{}; }
HK_INLINE vi as_i(vf v) { return reinterpret_cast<vi>(v); }
HK_INLINE vf as_f(vi v) { return reinterpret_cast<vf>(v); }
HK_INLINE vi shr(vi v, int n) { return reinterpret_cast<vi>(reinterpret_cast<vu>(v) >> n); }
HK_INLINE vf to_float(vi v) { return __builtin_convertvector(v, vf); }
HK_INLINE vi add_bytes(vi a, vi b) { return reinterpret_cast<vi>(reinterpret_cast<vu8>(a) + reinterpret_cast<vu8>(b)); }
HK_INLINE vi sub_bytes(vi a, vi b) { return reinterpret_cast<vi>(reinterpret_cast<vu8>(a) - reinterpret_cast<vu8>(b)); }
HK_INLINE vi sub_words(vi a, vi b) {
  return reinterpret_cast<vi>(reinterpret_cast<vi16>(a) - reinterpret_cast<vi16>(b));
}
HK_INLINE vi mul_words(vi a, vi b) {
  return reinterpret_cast<vi>(reinterpret_cast<vi16>(a) * reinterpret_cast<vi16>(b));
}
HK_INLINE vf select(vi mask, vf yes, vf no) { return as_f((mask & as_i(yes)) | (~mask & as_i(no))); }
// Constraint of an asm operand in a vector register.
#if defined(HK_ISA_AVX512)
#define HK_REGISTER "+v"
#elif defined(__SSE2__)
#define HK_REGISTER "+x"
#elif defined(HK_ISA_NEON)
#define HK_REGISTER "+w"
#else
#define HK_REGISTER "+m"
#endif
/// Makes the compiler take the value as it is: no arithmetic across this point is merged or reordered.
HK_INLINE vi opaque(vi v) {
  asm("" : HK_REGISTER(v));
  return v;
}
/// Bits of `yes` where the mask has ones, of `no` elsewhere.
HK_INLINE vi merge_bits(std::int32_t mask, vi yes, vi no) { return (yes & mask) | (no & ~mask); }
/// The low words of both, in every lane `low` below `high`. Compilers know a permutation for it, which takes longer.
HK_INLINE vi join_words(vi low, vi high) { return merge_bits(0xFFFF, low, opaque(high << 16)); }
/// The high word of `low` below the low word of `high`, in every lane.
HK_INLINE vi straddle_words(vi low, vi high) {
#if defined(HK_ISA_AVX512)
  // the permutation that compilers would take is three operations on some CPUs
  return (vi)_mm512_rol_epi32((__m512i)opaque(merge_bits(0xFFFF, high, low)), 16);
#else
  return shr(low, 16) | (high << 16);
#endif
}
HK_INLINE vf max_f(vf a, vf b) { return select(a > b, a, b); }
HK_INLINE vf min_f(vf a, vf b) { return select(a < b, a, b); }
HK_INLINE vf abs_f(vf a) { return as_f(as_i(a) & 0x7FFFFFFF); }

// ---------------------------------------------------------------------------------------------------------------------
// Operations that differ between levels.

#if defined(HK_ISA_AVX512)

HK_INLINE vf fma(vf a, vf b, vf c) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
HK_INLINE vf round_even(vf a) {
  return (vf)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
HK_INLINE vf sqrt_f(vf a) { return (vf)_mm512_sqrt_ps((__m512)a); }
/// Pairs of int16: acc + a0*b0 + a1*b1 in every lane.
HK_INLINE vi dot_s16(vi acc, vi a, vi b) {
#if defined(HK_ISA_VNNI)
  return (vi)_mm512_dpwssd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#else
  return acc + (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#endif
}
/// Four products of unsigned by signed bytes in every lane; u <= 127 unless the level has VNNI.
HK_INLINE vi dot_u8s8(vi acc, vi u, vi s) {
#if defined(HK_ISA_VNNI)
  return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)u, (__m512i)s);
#else
  return acc + (vi)_mm512_madd_epi16(_mm512_maddubs_epi16((__m512i)u, (__m512i)s), _mm512_set1_epi16(1));
#endif
}
/// table[code] for 16 signed bytes and codes 0..15 in every byte.
HK_INLINE vi lookup16(const std::int8_t* table, vi codes) {
  const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return (vi)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), (__m512i)codes);
}
/// Reorders the bytes of every 16-byte part: byte i comes from byte pattern[i].
HK_INLINE vi permute16(vi v, const std::int8_t* pattern) {
  const __m128i p = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pattern));
  return (vi)_mm512_shuffle_epi8((__m512i)v, _mm512_broadcast_i32x4(p));
}
HK_INLINE vf half_low(vi v) { return (vf)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)v)); }
/// Both halves of every lane at once.
HK_INLINE void split_halves(vi v, vf* low, vf* high) {
  alignas(64) static constexpr std::uint16_t kEvenThenOdd[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20,
                                                                 22, 24, 26, 28, 30, 1,  3,  5,  7,  9,  11,
                                                                 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  const __m512i words = _mm512_permutexvar_epi16(_mm512_load_si512(kEvenThenOdd), (__m512i)v);
  *low = (vf)_mm512_cvtph_ps(_mm512_castsi512_si256(words));
  *high = (vf)_mm512_cvtph_ps(_mm512_extracti64x4_epi64(words, 1));
}
HK_INLINE vf load_half(const void* p) {
  return (vf)_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
HK_INLINE void store_half(void* p, vf v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}
HK_INLINE void store_first(float* p, vf v, int count) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1U << count) - 1U), (__m512)v);
}
HK_INLINE vf load_first(const float* p, int count) {
  return (vf)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1U), p);
}
/// Sixteen bytes of each of W rows, transposed: lane r of out[j] is dword j of row r. `at(r)` yields the bytes of row
/// r.
template <typename At>
HK_INLINE void transpose16(const At& at, vi* out) {
  const auto four = [&](int j) HK_LAMBDA_INLINE {
    __m512i v = _mm512_castsi128_si512((__m128i)at(j));
    v = _mm512_inserti32x4(v, (__m128i)at(4 + j), 1);
    v = _mm512_inserti32x4(v, (__m128i)at(8 + j), 2);
    return _mm512_inserti32x4(v, (__m128i)at(12 + j), 3);
  };
  const __m512i t0 = four(0), t1 = four(1), t2 = four(2), t3 = four(3);
  const __m512i a0 = _mm512_unpacklo_epi32(t0, t1), a1 = _mm512_unpackhi_epi32(t0, t1);
  const __m512i a2 = _mm512_unpacklo_epi32(t2, t3), a3 = _mm512_unpackhi_epi32(t2, t3);
  out[0] = (vi)_mm512_unpacklo_epi64(a0, a2);
  out[1] = (vi)_mm512_unpackhi_epi64(a0, a2);
  out[2] = (vi)_mm512_unpacklo_epi64(a1, a3);
  out[3] = (vi)_mm512_unpackhi_epi64(a1, a3);
}
/// 4 * W bytes of each of W rows, transposed. Whole cache lines are taken at once: rows whose distance is a multiple of
/// 4 KiB share an L1 set, and a line that is visited again later would be gone. Two rows' halves of a line are joined
/// by the load, which takes no shuffle: CPUs with a single shuffle port spend their time there.
HK_INLINE void load_rows_wide(const std::uint8_t* const* rows, std::size_t offset, vi* out) {
  const auto half_lines = [&](int r, int half) HK_LAMBDA_INLINE {
    const auto at = [&](int row) HK_LAMBDA_INLINE {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[row] + offset + 32 * half));
    };
    return _mm512_inserti64x4(_mm512_castsi256_si512(at(r)), at(r + 4), 1);
  };
  // four vectors of rows: in every 128-bit part, dword j of four rows
  const auto transpose4 = [](const __m512i* rows4, __m512i* out4) HK_LAMBDA_INLINE {
    __m512i t[4];
    for (int r = 0; r < 4; r += 2) {
      t[r] = _mm512_unpacklo_epi32(rows4[r], rows4[r + 1]);
      t[r + 1] = _mm512_unpackhi_epi32(rows4[r], rows4[r + 1]);
    }
    out4[0] = _mm512_unpacklo_epi64(t[0], t[2]);
    out4[1] = _mm512_unpackhi_epi64(t[0], t[2]);
    out4[2] = _mm512_unpacklo_epi64(t[1], t[3]);
    out4[3] = _mm512_unpackhi_epi64(t[1], t[3]);
  };
  __m512i a[2][2][4];  // [half of the line][eight rows][vector], then [..][dword of 16 bytes]
  for (int eight = 0; eight < 2; ++eight) {
    for (int half = 0; half < 2; ++half) {
      __m512i joined[4];
      for (int r = 0; r < 4; ++r) joined[r] = half_lines(8 * eight + r, half);
      transpose4(joined, a[half][eight]);
    }
  }
  for (int half = 0; half < 2; ++half) {
    for (int j = 0; j < 4; ++j) {
      out[8 * half + j] = (vi)_mm512_shuffle_i32x4(a[half][0][j], a[half][1][j], 0x88);
      out[8 * half + 4 + j] = (vi)_mm512_shuffle_i32x4(a[half][0][j], a[half][1][j], 0xDD);
    }
  }
}

#elif defined(HK_ISA_AVX2)

HK_INLINE vf fma(vf a, vf b, vf c) { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
HK_INLINE vf round_even(vf a) { return (vf)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
HK_INLINE vf sqrt_f(vf a) { return (vf)_mm256_sqrt_ps((__m256)a); }
HK_INLINE vi dot_s16(vi acc, vi a, vi b) {
#if defined(HK_ISA_VNNI)
  return (vi)_mm256_dpwssd_avx_epi32((__m256i)acc, (__m256i)a, (__m256i)b);
#else
  return acc + (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#endif
}
HK_INLINE vi dot_u8s8(vi acc, vi u, vi s) {
#if defined(HK_ISA_VNNI)
  return (vi)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)u, (__m256i)s);
#else
  return acc + (vi)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)u, (__m256i)s), _mm256_set1_epi16(1));
#endif
}
HK_INLINE vi lookup16(const std::int8_t* table, vi codes) {
  const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return (vi)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), (__m256i)codes);
}
HK_INLINE vi permute16(vi v, const std::int8_t* pattern) {
  const __m128i p = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pattern));
  return (vi)_mm256_shuffle_epi8((__m256i)v, _mm256_broadcastsi128_si256(p));
}
HK_INLINE vf load_half(const void* p) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
HK_INLINE vf half_low(vi v) {
  // pack the low words of the eight lanes into one 128-bit register
  const __m256i words =
      _mm256_shuffle_epi8((__m256i)v, _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1,
                                                       4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1));
  return (vf)_mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(words, 0x08)));
}
HK_INLINE void split_halves(vi v, vf* low, vf* high) {
  const __m256i pattern = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5, 8, 9, 12,
                                           13, 2, 3, 6, 7, 10, 11, 14, 15);
  const __m256i words = _mm256_permute4x64_epi64(_mm256_shuffle_epi8((__m256i)v, pattern), 0xD8);
  *low = (vf)_mm256_cvtph_ps(_mm256_castsi256_si128(words));
  *high = (vf)_mm256_cvtph_ps(_mm256_extracti128_si256(words, 1));
}
HK_INLINE void store_half(void* p, vf v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}
HK_INLINE __m256i first_mask(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
HK_INLINE void store_first(float* p, vf v, int count) { _mm256_maskstore_ps(p, first_mask(count), (__m256)v); }
HK_INLINE vf load_first(const float* p, int count) { return (vf)_mm256_maskload_ps(p, first_mask(count)); }
template <typename At>
HK_INLINE void transpose16(const At& at, vi* out) {
  const auto two = [&](int j) HK_LAMBDA_INLINE {
    return _mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)at(j)), (__m128i)at(4 + j), 1);
  };
  const __m256i t0 = two(0), t1 = two(1), t2 = two(2), t3 = two(3);
  const __m256i a0 = _mm256_unpacklo_epi32(t0, t1), a1 = _mm256_unpackhi_epi32(t0, t1);
  const __m256i a2 = _mm256_unpacklo_epi32(t2, t3), a3 = _mm256_unpackhi_epi32(t2, t3);
  out[0] = (vi)_mm256_unpacklo_epi64(a0, a2);
  out[1] = (vi)_mm256_unpackhi_epi64(a0, a2);
  out[2] = (vi)_mm256_unpacklo_epi64(a1, a3);
  out[3] = (vi)_mm256_unpackhi_epi64(a1, a3);
}

#else  // four lanes: NEON, SSE2, or whatever the compiler makes of it

#if defined(HK_ISA_NEON)
HK_INLINE vf fma(vf a, vf b, vf c) { return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
HK_INLINE vf round_even(vf a) { return (vf)vrndnq_f32((float32x4_t)a); }
HK_INLINE vf sqrt_f(vf a) { return (vf)vsqrtq_f32((float32x4_t)a); }
HK_INLINE vi dot_s16(vi acc, vi a, vi b) {
  const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
  const int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y));
  return acc + (vi)vpaddq_s32(low, vmull_high_s16(x, y));
}
/// u <= 127, so signed by signed serves.
HK_INLINE vi dot_u8s8(vi acc, vi u, vi s) {
#if defined(HK_ISA_DOTPROD)
  return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)u, (int8x16_t)s);
#else
  const int8x16_t x = (int8x16_t)u, y = (int8x16_t)s;
  const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y)), high = vmull_high_s8(x, y);
  return acc + (vi)vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
#endif
}
HK_INLINE vi lookup16(const std::int8_t* table, vi codes) { return (vi)vqtbl1q_s8(vld1q_s8(table), (uint8x16_t)codes); }
HK_INLINE vi permute16(vi v, const std::int8_t* pattern) {
  return (vi)vqtbl1q_s8((int8x16_t)v, vreinterpretq_u8_s8(vld1q_s8(pattern)));
}
HK_INLINE vf load_half(const void* p) {
  return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(static_cast<const std::uint16_t*>(p))));
}
HK_INLINE vf half_low(vi v) { return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32((uint32x4_t)v))); }
HK_INLINE void store_half(void* p, vf v) {
  vst1_u16(static_cast<std::uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));
}
#else
/// Two roundings: baseline CPUs have no fused form, and calling the library for each lane would be far too slow.
HK_INLINE vf fma(vf a, vf b, vf c) { return a * b + c; }
/// |a| < 2^22: adding and removing 1.5 * 2^23 rounds to nearest even.
HK_INLINE vf round_even(vf a) { return (a + 12582912.0f) - 12582912.0f; }
HK_INLINE vf sqrt_f(vf a) {
#if defined(__SSE2__)
  return (vf)_mm_sqrt_ps((__m128)a);
#else
  for (int i = 0; i < W; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
#endif
}
HK_INLINE vi dot_s16(vi acc, vi a, vi b) {
#if defined(__SSE2__)
  return acc + (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  return acc + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}
HK_INLINE vi dot_u8s8(vi acc, vi u, vi s) {
  const vi even = dot_s16(acc, u & 0x00FF00FF, reinterpret_cast<vi>((reinterpret_cast<vi16>(s) << 8) >> 8));
  return dot_s16(even, shr(u, 8) & 0x00FF00FF, reinterpret_cast<vi>(reinterpret_cast<vi16>(s) >> 8));
}
/// A tree of choices by the bits of the code: without a byte shuffle, elements one by one would take longer.
HK_INLINE vi lookup16(const std::int8_t* table, vi codes) {
  vi found[16];
  for (int i = 0; i < 16; ++i) {
    found[i] = set_i(static_cast<std::int32_t>(static_cast<std::uint8_t>(table[i]) * 0x01010101U));
  }
  for (int bit = 0, count = 8; bit < 4; ++bit, count /= 2) {
    const vi mask = reinterpret_cast<vi>(reinterpret_cast<vi8>(codes << (7 - bit)) < 0);
    for (int i = 0; i < count; ++i) found[i] = found[2 * i] ^ (mask & (found[2 * i] ^ found[2 * i + 1]));
  }
  return found[0];
}
HK_INLINE vi permute16(vi v, const std::int8_t* pattern) {
  const vi8 x = reinterpret_cast<vi8>(v);
  vi8 r{};
  for (int i = 0; i < 4 * W; ++i) r[i] = static_cast<signed char>(pattern[i] < 0 ? 0 : x[pattern[i] & 15]);
  return reinterpret_cast<vi>(r);
}
/// Low 16 bits of every lane as binary16, subnormals and infinities included.
HK_INLINE vf half_low(vi v) {
  const vi magnitude = (v & 0x7FFF) << 13;
  const vf scaled = as_f(magnitude) * 0x1p112f;  // moves the exponent bias from 15 to 127; exact, subnormals too
  const vi special = magnitude >= 0x0F800000;    // exponent 31: infinity or NaN
  const vi bits = (special & (magnitude | 0x7F800000)) | (~special & as_i(scaled));
  return as_f(bits | ((v & 0x8000) << 16));
}
HK_INLINE vf load_half(const void* p) {
  const auto* h = static_cast<const std::uint8_t*>(p);
  return half_low(vi{load16(h), load16(h + 2), load16(h + 4), load16(h + 6)});
}
/// Round to nearest even, overflow to infinity, NaN stays NaN.
HK_INLINE void store_half(void* p, vf v) {
  const vi bits = as_i(v), sign = shr(bits, 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // normal results: rebias and round in integers; subnormal results: let the float adder round by adding 0.5
  const vi normal = shr(magnitude - 0x38000000 + 0x0FFF + (shr(magnitude, 13) & 1), 13);
  const vi subnormal = as_i(as_f(magnitude) + 0.5f) - 0x3F000000;
  const vi is_small = magnitude<0x38800000, is_large = magnitude >= 0x47800000, is_nan = magnitude> 0x7F800000;
  vi h = (is_small & subnormal) | (~is_small & normal);
  h = (is_large & 0x7C00) | (~is_large & h);
  h = ((is_nan & 0x7E00) | (~is_nan & h)) | sign;
  for (int i = 0; i < W; ++i) {
    const auto word = static_cast<std::uint16_t>(h[i]);
    __builtin_memcpy(static_cast<std::uint8_t*>(p) + 2 * i, &word, 2);
  }
}
#endif
HK_INLINE void store_first(float* p, vf v, int count) {
  // the constant bound tells the compiler what count never exceeds
  for (int i = 0; i < W; ++i) {
    if (i < count) p[i] = v[i];
  }
}
HK_INLINE vf load_first(const float* p, int count) {
  vf v{};
  for (int i = 0; i < W; ++i) {
    if (i < count) v[i] = p[i];
  }
  return v;
}
template <typename At>
HK_INLINE void transpose16(const At& at, vi* out) {
  const vi t0 = (vi)at(0), t1 = (vi)at(1), t2 = (vi)at(2), t3 = (vi)at(3);
  out[0] = vi{t0[0], t1[0], t2[0], t3[0]};
  out[1] = vi{t0[1], t1[1], t2[1], t3[1]};
  out[2] = vi{t0[2], t1[2], t2[2], t3[2]};
  out[3] = vi{t0[3], t1[3], t2[3], t3[3]};
}

#endif

// ---------------------------------------------------------------------------------------------------------------------
// Signed weights that use the whole int8 range (q8_0, iq4_*). VNNI wants an unsigned operand: there the weight is
// stored as w + 128 and 128 * sum(activations) is taken off again; elsewhere the signs move to the activation.

#if defined(HK_ISA_VNNI)
inline constexpr int kWideBias = 128;
HK_INLINE vi wide(vi w) { return w ^ static_cast<std::int32_t>(0x80808080); }
HK_INLINE vi dot_wide(vi acc, vi w, vi s) { return dot_u8s8(acc, w, s); }
#else
inline constexpr int kWideBias = 0;
HK_INLINE vi wide(vi w) { return w; }
#if defined(HK_ISA_AVX512)
HK_INLINE vi dot_wide(vi acc, vi w, vi s) {
  // AVX-512 has no sign instruction: negate under a mask
  const __mmask64 negative = _mm512_movepi8_mask((__m512i)w);
  const __m512i signed_s = _mm512_mask_sub_epi8((__m512i)s, negative, _mm512_setzero_si512(), (__m512i)s);
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8((__m512i)w), signed_s);
  return acc + (vi)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}
#elif defined(HK_ISA_AVX2)
HK_INLINE vi dot_wide(vi acc, vi w, vi s) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8((__m256i)w), _mm256_sign_epi8((__m256i)s, (__m256i)w));
  return acc + (vi)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#elif defined(HK_ISA_NEON)
HK_INLINE vi dot_wide(vi acc, vi w, vi s) { return dot_u8s8(acc, w, s); }
#else
HK_INLINE vi dot_wide(vi acc, vi w, vi s) {
  const auto even = [](vi v) { return reinterpret_cast<vi>((reinterpret_cast<vi16>(v) << 8) >> 8); };
  const auto odd = [](vi v) { return reinterpret_cast<vi>(reinterpret_cast<vi16>(v) >> 8); };
  return dot_s16(dot_s16(acc, even(w), even(s)), odd(w), odd(s));
}
#endif
#endif

HK_INLINE v16 load_bytes16(const void* p) { return *static_cast<const v16_unaligned*>(p); }
HK_INLINE void load_rows16(const std::uint8_t* const* rows, std::size_t offset, vi* out) {
  transpose16([&](int r) HK_LAMBDA_INLINE { return load_bytes16(rows[r] + offset); }, out);
}
#if !defined(HK_ISA_AVX512)
HK_INLINE void load_rows_wide(const std::uint8_t* const* rows, std::size_t offset, vi* out) {
  for (int j = 0; j < W; j += 4) load_rows16(rows, offset + 4 * j, out + j);
}
#endif
/// The dword at `offset` of each of W rows; sixteen bytes from there on must be readable. Taking the first dword of a
/// transposed load is cheaper than gathering: W small stores before one wide load would stall.
HK_INLINE vi load_rows4(const std::uint8_t* const* rows, std::size_t offset) {
  vi out[4];
  load_rows16(rows, offset, out);
  return out[0];
}
/// The same for the dword that ends at `end`; sixteen bytes before it must be readable.
HK_INLINE vi load_rows4_before(const std::uint8_t* const* rows, std::size_t end) {
  vi out[4];
  load_rows16(rows, end - 16, out);
  return out[3];
}
/// kCount words (dwords of all rows) from `offset` on; what they cover is read and nothing else. kCount is at least 4.
template <int kCount>
HK_INLINE void load_words(const std::uint8_t* const* rows, std::size_t offset, vi* words) {
  int at = 0;
#pragma GCC unroll 8
  for (; at + W <= kCount; at += W) load_rows_wide(rows, offset + 4 * at, words + at);
#pragma GCC unroll 4
  for (; at + 4 <= kCount; at += 4) load_rows16(rows, offset + 4 * at, words + at);
  if constexpr (kCount % 4 != 0) {
    vi last[4];
    load_rows16(rows, offset + 4 * (kCount - 4), last);
    for (int j = 4 - kCount % 4; j < 4; ++j) words[kCount - 4 + j] = last[j];
  }
}
/// Bytes -> all ones where the byte is 1, for bytes 0 or 1.
HK_INLINE vi byte_mask(vi bits) { return sub_bytes(vi{}, bits); }
/// 3 * byte / 256, in 0..2.
HK_INLINE vi times_three_high(vi bytes) {
#if defined(HK_ISA_AVX512)
  const __mmask64 one = _mm512_cmpge_epu8_mask((__m512i)bytes, _mm512_set1_epi8(86));
  const __mmask64 two = _mm512_cmpge_epu8_mask((__m512i)bytes, _mm512_set1_epi8(static_cast<char>(171)));
  return (vi)_mm512_mask_mov_epi8(_mm512_maskz_set1_epi8(one, 1), two, _mm512_set1_epi8(2));
#else
  const vu8 x = reinterpret_cast<vu8>(bytes);
  return sub_bytes(sub_bytes(vi{}, reinterpret_cast<vi>(x >= 86)), reinterpret_cast<vi>(x >= 171));
#endif
}
HK_INLINE vf half_high(vi v) { return half_low(shr(v, 16)); }
#if !defined(HK_ISA_AVX512) && !defined(HK_ISA_AVX2)
HK_INLINE void split_halves(vi v, vf* low, vf* high) {
  *low = half_low(v);
  *high = half_high(v);
}
#endif

/// Sum and largest of the lanes, always in the same tree order.
HK_INLINE float sum_lanes(vf v) {
  alignas(64) float x[W];
  store_f(x, v);
  for (int half = W / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x[i] += x[i + half];
  }
  return x[0];
}
HK_INLINE float max_lanes(vf v) {
  alignas(64) float x[W];
  store_f(x, v);
  for (int half = W / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) x[i] = x[i] > x[i + half] ? x[i] : x[i + half];
  }
  return x[0];
}

}  // namespace
}  // namespace hk::kernels
