// Unpackers of the iq2 and iq3 formats for few activations on CPUs with byte permutations (AVX512-VBMI, GFNI).
//
// Part of the level sources (see vec.h and unpack_grid.h). One permutation looks 64 bytes up in 128, so the four bytes
// of a word are the indices of four points, and a point's levels come as two bytes from two tables (the planes of
// kernels/quant/codebooks.h). Step u of 32 elements then takes one element out of each of the four points; activations
// are brought into that order. Where two points have a scale of their own (kHalves), so do the halves of every step.
#pragma once

#include "kernels/isa/unpack_grid.h"

#if defined(HK_ISA_VBMI)

namespace hk::kernels {
namespace {

/// Sixty-four values for permutations by the low six bits of an index: a pattern of 8 or 16 that repeats, so that the
/// bits above those of the pattern do not matter.
HK_INLINE vi repeat8(const std::int8_t* values) {
  std::int64_t pattern;
  __builtin_memcpy(&pattern, values, 8);
  return (vi)_mm512_set1_epi64(pattern);
}
HK_INLINE vi repeat16(const std::int8_t* values) {
  return (vi)_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
}
HK_INLINE vi permute64(vi values, vi index) { return (vi)_mm512_permutexvar_epi8((__m512i)index, (__m512i)values); }

/// Bit offsets of the four fields that fields_at() takes out of every lane.
struct Fields {
  alignas(64) std::uint8_t offsets[64];
  constexpr Fields(int first, int second, int third, int fourth) : offsets() {
    const int lane[4] = {first, second, third, fourth};
    for (int i = 0; i < 64; ++i) offsets[i] = static_cast<std::uint8_t>((lane[i % 4] + i / 4 % 2 * 32) & 63);
  }
};
/// Four fields of eight bits of every lane; where one leaves the lane, bits of another lane take the place.
HK_INLINE vi fields_at(vi v, const Fields& fields) {
  return (vi)_mm512_multishift_epi64_epi8(_mm512_load_si512(fields.offsets), (__m512i)v);
}

/// Sign bytes from 7-bit indices in bits kFrom..kFrom + 6 of every byte: bit 7 makes the number of set bits even.
template <int kFrom>
HK_INLINE vi sign_bytes(vi index) {
  // row 7 - i of the matrix says which bits are added up for bit i
  constexpr std::int64_t kMatrix = kFrom == 0 ? 0x010204081020407F : 0x02040810204080FE;
  return (vi)_mm512_gf2p8affine_epi64_epi8((__m512i)index, _mm512_set1_epi64(kMatrix), 0);
}

/// Bytes 0 and 2, or 1 and 3, of both: those of `a` below those of `b`, in every lane.
template <int kFirst>
HK_INLINE vi bytes_of_two(vi a, vi b) {
  struct Pattern {
    alignas(64) std::uint8_t from[64];
    constexpr Pattern() : from() {
      for (int i = 0; i < 64; ++i) from[i] = static_cast<std::uint8_t>(i / 4 * 4 + i % 2 * 2 + i % 4 / 2 * 64 + kFirst);
    }
  };
  static constexpr Pattern kPattern;
  return (vi)_mm512_permutex2var_epi8((__m512i)a, _mm512_load_si512(kPattern.from), (__m512i)b);
}
HK_INLINE vi even_bytes(vi a, vi b) { return bytes_of_two<0>(a, b); }
HK_INLINE vi odd_bytes(vi a, vi b) { return bytes_of_two<1>(a, b); }

/// Entries of kBlocks * 128 bytes; bits[k] chooses between the halves of 256 << k.
template <int kBlocks, int kLevels, int kCount>
HK_INLINE void lookup_bytes(const std::uint8_t* table, const __m512i (&indices)[kCount],
                            const __mmask64 (&bits)[kLevels][kCount], __m512i (&found)[kCount]) {
  if constexpr (kBlocks == 1) {
    const __m512i low = _mm512_load_si512(table), high = _mm512_load_si512(table + 64);
    for (int i = 0; i < kCount; ++i) found[i] = _mm512_permutex2var_epi8(low, indices[i], high);
  } else {
    constexpr int kLevel = __builtin_ctz(kBlocks) - 1;
    __m512i low[kCount], high[kCount];
    lookup_bytes<kBlocks / 2>(table, indices, bits, low);
    lookup_bytes<kBlocks / 2>(table + 64 * kBlocks, indices, bits, high);
    for (int i = 0; i < kCount; ++i) found[i] = _mm512_mask_blend_epi8(bits[kLevel][i], low[i], high[i]);
  }
}
/// Both planes of the points whose indices have their low byte in `low` and further bits, from bit 0 on, in `high`.
template <int kEntries, int kVectors>
HK_INLINE void lookup_points(const std::uint8_t (&planes)[2][kEntries], const vi (&low)[kVectors], const vi* high,
                             vi (&points)[2][kVectors]) {
  constexpr int kLevels = __builtin_ctz(kEntries) - 7;
  constexpr int kCount = kLevels == 1 ? 4 : 2;  // their masks fit into the mask registers
#pragma GCC unroll 1
  for (int first = 0; first < kVectors; first += kCount) {
    __m512i indices[kCount];
    __mmask64 bits[kLevels][kCount];
    for (int i = 0; i < kCount; ++i) {
      indices[i] = (__m512i)low[first + i];
      bits[0][i] = _mm512_movepi8_mask(indices[i]);
      for (int k = 1; k < kLevels; ++k)
        bits[k][i] = _mm512_test_epi8_mask((__m512i)high[first + i], _mm512_set1_epi8(static_cast<char>(1 << (k - 1))));
    }
    for (int plane = 0; plane < 2; ++plane) {
      __m512i found[kCount];
      lookup_bytes<kEntries / 128>(planes[plane], indices, bits, found);
      for (int i = 0; i < kCount; ++i) points[plane][first + i] = (vi)found[i];
    }
  }
}

/// Products of unsigned by signed bytes, added up in pairs: 107 * 127 * 2 at most.
struct HalvesFormat {
  static HK_INLINE vi pairs(vi u, vi s) { return (vi)_mm512_maddubs_epi16((__m512i)u, (__m512i)s); }
};

/// `v` moved so that bit `from` of every byte stands at bit `to`; what comes in from neighbours does not matter.
HK_INLINE vi move_bit(vi v, int from, int to) { return from < to ? v << (to - from) : shr(v, from - to); }

template <int kGroups, int kVectors, int kSigns>
struct PlaneHead : SuperHead<kGroups, 0> {
  vi points[2][kVectors];
  vi signs[kSigns];
};

/// Pairs of 2s + 1 for the nibble scales of 16 elements each, in two words.
HK_INLINE void nibble_scale_pairs(const vi* words, vi* scales) {
  static constexpr Fields kPairs[4] = {{-1, 0, 3, 0}, {7, 0, 11, 0}, {15, 0, 19, 0}, {23, 0, 27, 0}};
#pragma GCC unroll 8
  for (int k = 0; k < 8; ++k) scales[k] = (fields_at(words[k / 4], kPairs[k % 4]) & 0x001E001E) | 0x00010001;
}
/// 2s + 1 for the nibble at bit 4 * k, of 32 elements.
HK_INLINE vi nibble_scale(vi word, int k) { return ((k == 0 ? word << 1 : shr(word, 4 * k - 1)) & 0x1E) | 1; }

/// iq2: step u has element u of each of four points.
template <typename F>
struct IQ2Planes : F {
  static HK_INLINE vi reorder(vi codes) {
    alignas(64) static constexpr std::uint8_t kFrom[64] = {
        0,  8,  16, 24, 1,  9,  17, 25, 2,  10, 18, 26, 3,  11, 19, 27, 4,  12, 20, 28, 5,  13,
        21, 29, 6,  14, 22, 30, 7,  15, 23, 31, 32, 40, 48, 56, 33, 41, 49, 57, 34, 42, 50, 58,
        35, 43, 51, 59, 36, 44, 52, 60, 37, 45, 53, 61, 38, 46, 54, 62, 39, 47, 55, 63};
    return permute64(codes, load_i(kFrom));
  }
  template <typename Head>
  static HK_INLINE void sub(const vi*, int g, const Head& head, vi* steps) {
    // level in bits 0 and 1, sign in bit 2
    alignas(8) static constexpr std::int8_t kValues[8] = {64 + 8, 64 + 25, 64 + 43, 64, 64 - 8, 64 - 25, 64 - 43, 64};
    const vi values = repeat8(kValues);
#pragma GCC unroll 8
    for (int u = 0; u < 8; ++u) {
      const vi level = shr(head.points[u % 2][g], u / 2 * 2), sign = move_bit(head.signs[g], u, 2);
      steps[u] = permute64(values, merge_bits(0x03030303, level, sign));
    }
  }
};

struct IQ2_XXSStream : IQ2Planes<IQ2_XXS> {
  using Head = PlaneHead<8, 8, 8>;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    static constexpr Fields kSevens(0, 7, 14, 21);
    head.d = half_low(edge) * 0.125f;
    head.dmin = vf{};
    vi low[8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {  // four index bytes, then sign indices and scale
      low[g] = words[2 * g];
      head.signs[g] = sign_bytes<0>(fields_at(words[2 * g + 1], kSevens));
      head.scales[g] = shr(words[2 * g + 1], 27) | 1;
    }
    lookup_points(kIQ2XXSPlanes, low, nullptr, head.points);
  }
};

struct IQ2_XSStream : IQ2Planes<IQ2_XS>, HalvesFormat {
  static constexpr bool kHalves = true;
  static constexpr int kGroup = 32;
  using Head = PlaneHead<8, 8, 8>;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    head.d = half_low(edge) * 0.125f;
    head.dmin = vf{};
    vi low[8], high[8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {  // the index has nine bits, the sign index stands above it
      low[g] = even_bytes(words[2 * g], words[2 * g + 1]);
      high[g] = odd_bytes(words[2 * g], words[2 * g + 1]);
      head.signs[g] = sign_bytes<1>(high[g]);
    }
    lookup_points(kIQ2XSPlanes, low, high, head.points);
    nibble_scale_pairs(words + 16, head.scales);
  }
};

struct IQ2_SStream : IQ2Planes<IQ2_S>, HalvesFormat {
  static constexpr bool kHalves = true;
  static constexpr int kGroup = 32;
  using Head = PlaneHead<8, 8, 8>;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    static constexpr Fields kTwos[4] = {{0, 2, 4, 6}, {8, 10, 12, 14}, {16, 18, 20, 22}, {24, 26, 28, 30}};
    head.d = half_low(edge) * 0.125f;
    head.dmin = vf{};
    vi low[8], high[8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      low[g] = words[g];
      high[g] = fields_at(words[16 + g / 4], kTwos[g % 4]);
      head.signs[g] = words[8 + g];
    }
    lookup_points(kIQ2SPlanes, low, high, head.points);
    nibble_scale_pairs(words + 18, head.scales);
  }
};

/// iq3: of steps 0..3 and 4..7, each has one element of each of four points.
template <typename F, const std::int8_t* kValues>
struct IQ3Planes : F {
  using Head = PlaneHead<8, 16, 16>;
  static HK_INLINE vi reorder(vi codes) {
    alignas(16) static constexpr std::int8_t kFrom[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    return permute16(codes, kFrom);
  }
  /// Sign bytes of eight elements to two vectors that have, for four points, the signs of their elements in bits 0..3.
  static HK_INLINE void spread_signs(vi bytes, vi* signs) {
    static constexpr Fields kNibbles[2] = {{0, 4, 8, 12}, {16, 20, 24, 28}};
    signs[0] = fields_at(bytes, kNibbles[0]);
    signs[1] = fields_at(bytes, kNibbles[1]);
  }
  static HK_INLINE void sub(const vi*, int g, const Head& head, vi* steps) {
    const vi values = repeat16(kValues);
#pragma GCC unroll 8
    for (int u = 0; u < 8; ++u) {
      const int e = u % 4, k = 2 * g + u / 4;
      const vi level = shr(head.points[e % 2][k], e / 2 * 4), sign = move_bit(head.signs[k], e, 3);
      steps[u] = permute64(values, merge_bits(0x07070707, level, sign));
    }
  }
};

struct IQ3_XXSStream : IQ3Planes<IQ3_XXS, kIQ3XXSValues> {
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    static constexpr Fields kSevens(0, 7, 14, 21);
    head.d = half_low(edge) * 0.25f;
    head.dmin = vf{};
    vi low[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) low[k] = words[k];
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      spread_signs(sign_bytes<0>(fields_at(words[16 + g], kSevens)), head.signs + 2 * g);
      head.scales[g] = shr(words[16 + g], 27) | 1;
    }
    lookup_points(kIQ3XXSPlanes, low, nullptr, head.points);
  }
};

struct IQ3_SStream : IQ3Planes<IQ3_S, kIQ3SValues> {
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    static constexpr Fields kOnes[8] = {{0, 1, 2, 3},     {4, 5, 6, 7},     {8, 9, 10, 11},   {12, 13, 14, 15},
                                        {16, 17, 18, 19}, {20, 21, 22, 23}, {24, 25, 26, 27}, {28, 29, 30, 31}};
    head.d = half_low(edge);
    head.dmin = vf{};
    vi low[16], high[16];
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) {
      low[k] = words[k];
      high[k] = fields_at(words[16 + k / 8], kOnes[k % 8]);  // one bit a point
    }
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      spread_signs(words[18 + g], head.signs + 2 * g);
      head.scales[g] = nibble_scale(words[26], g);
    }
    lookup_points(kIQ3SPlanes, low, high, head.points);
  }
};

}  // namespace
}  // namespace hk::kernels

#endif
