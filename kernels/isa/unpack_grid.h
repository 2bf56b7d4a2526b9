// Unpackers of the grid formats (iq1, iq2, iq3): codebook points, W rows at a time.
//
// Part of the level sources (see vec.h and unpack_super.h). A codebook point has few different levels, so a whole point
// is one 16-bit word (kernels/quant/codebooks.h) and 2 * W points are looked up at once. Even elements lie in the low
// byte of a point and odd ones in the high byte, so that the same shift and mask brings neighbours out of two points:
// with 16 elements as eight pairs, step u of these formats holds pairs u and u + 4 ("pair order"). Streams
// bring the activations into that order, tiles bring the steps back. Layouts: QUANTS.md 4.16 to 4.23.
#pragma once

#include "kernels/isa/lookup.h"
#include "kernels/isa/unpack_super.h"

namespace hk::kernels {
namespace {

/// Bias of the signed grid formats: magnitudes are at most 62, so biased bytes stay within 0..127 on every level.
inline constexpr int kGridBias = 64;

/// Biased values by level number (bits 0..1 for iq2, 0..2 for iq3) and sign (bit 3). Bit 2 of an iq2 number belongs to
/// the element next to it: both values of it lead to the same entry.
alignas(16) constexpr std::int8_t kIQ2Values[16] = {64 + 8, 64 + 25, 64 + 43, 64, 64 + 8, 64 + 25, 64 + 43, 64,
                                                    64 - 8, 64 - 25, 64 - 43, 64, 64 - 8, 64 - 25, 64 - 43, 64};
alignas(16) constexpr std::int8_t kIQ3XXSValues[16] = {64 + 4,  64 + 12, 64 + 20, 64 + 28, 64 + 36, 64 + 44,
                                                       64 + 52, 64 + 62, 64 - 4,  64 - 12, 64 - 20, 64 - 28,
                                                       64 - 36, 64 - 44, 64 - 52, 64 - 62};
alignas(16) constexpr std::int8_t kIQ3SValues[16] = {64 + 1, 64 + 3, 64 + 5, 64 + 7, 64 + 9, 64 + 11, 64 + 13, 64 + 15,
                                                     64 - 1, 64 - 3, 64 - 5, 64 - 7, 64 - 9, 64 - 11, 64 - 13, 64 - 15};

/// Each of the sign bytes 2 * half and 2 * half + 1 of every lane twice.
HK_INLINE vi repeat_signs(vi signs, int half) {
  alignas(16) static constexpr std::int8_t kPattern[2][16] = {{0, 0, 1, 1, 4, 4, 5, 5, 8, 8, 9, 9, 12, 12, 13, 13},
                                                              {2, 2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15}};
  return permute16(signs, kPattern[half]);
}

/// Sixteen elements from their level numbers: element e of each eight is nibble e / 4 of byte e % 2, in `first` when
/// e % 4 < 2, else in `second`; bit e of the sign byte goes on top of the nibble.
HK_INLINE void signed_steps(vi first, vi second, vi signs, int half, const std::int8_t* values, vi* steps) {
  const vi s = repeat_signs(signs, half);
  first = merge_bits(0x77777777, first, merge_bits(0x00FF00FF, s << 3, s << 2));
  second = merge_bits(0x77777777, second, merge_bits(0x00FF00FF, s << 1, s));
  steps[0] = lookup16(values, first & kLowNibbles);
  steps[1] = lookup16(values, second & kLowNibbles);
  steps[2] = lookup16(values, shr(first, 4) & kLowNibbles);
  steps[3] = lookup16(values, shr(second, 4) & kLowNibbles);
}
/// Four 7-bit sign indices (one a byte) to sign bytes: bit 7 makes the number of set bits even.
HK_INLINE vi complete_signs(vi index) {
  vi parity = index ^ (shr(index, 4) & kLowNibbles);
  parity ^= shr(parity, 2) & 0x3F3F3F3F;
  parity ^= shr(parity, 1) & 0x7F7F7F7F;
  return index | ((parity & 0x01010101) << 7);
}
/// The four sign indices in bits 0..27 of iq2_xxs's and iq3_xxs's words.
HK_INLINE vi packed_signs(vi word) {
  const vi pairs = merge_bits(0x00003FFF, word, word << 2);  // bits 0..13 and 16..29
  return complete_signs(merge_bits(0x007F007F, pairs, pairs << 1) & 0x7F7F7F7F);
}

/// What head() makes of a super-block. All points are looked up there, before sub() takes the first: the lookups of a
/// level without table permutations go through memory, and need some distance to what reads them.
template <int kPointVectors>
struct GridHead : SuperHead<16, 0> {
  vi points[kPointVectors];  ///< two a lane; indices until they are looked up
  vi signs[8];               ///< sign bytes of every group of 32
};

/// Brings bytes from the order of elements into pair order: of 16 bytes as pairs, 0 4 1 5 2 6 3 7.
HK_INLINE vi to_pair_order(vi bytes) {
  alignas(16) static constexpr std::int8_t kPattern[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  return permute16(bytes, kPattern);
}
/// Brings four steps back from it.
HK_INLINE void from_pair_order(vi* s) {
  const vi s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
  s[0] = merge_bits(0xFFFF, s0, s1 << 16);
  s[1] = merge_bits(0xFFFF, s2, s3 << 16);
  s[2] = merge_bits(0xFFFF, shr(s0, 16), s1);
  s[3] = merge_bits(0xFFFF, shr(s2, 16), s3);
}

struct GridFormat : SuperFormat {
  static constexpr bool kReordered = true;
  static HK_INLINE vi reorder(vi codes) { return to_pair_order(codes); }
  static HK_INLINE void restore(vi* steps) {
    for (int u = 0; u < kSub / 4; u += 4) from_pair_order(steps + u);
  }
  static constexpr int kBias = kGridBias;
  static constexpr int kSub = 32;
  static constexpr int kFirst = 2;
  static constexpr Edge kEdge = Edge::kFront;
};

/// iq2: points of eight elements, vectors 2g and 2g + 1 hold those of group g.
template <int kEntries, const std::uint16_t* kTable>
struct IQ2Format : GridFormat {
  using Head = GridHead<16>;
  static HK_INLINE void sub(const vi*, int g, const Head& head, vi* steps) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const vi points = lookup_words<kEntries>(kTable, head.points[2 * g + h]);
      signed_steps(points, shr(points, 2), head.signs[g], h, kIQ2Values, steps + 4 * h);
    }
  }
};

/// Nibble scales of 16 elements each, in two dwords, to 2s + 1.
HK_INLINE void nibble_scales(const vi* words, vi* scales) {
  for (int g = 0; g < 16; ++g) scales[g] = 2 * (shr(words[g / 8], 4 * (g % 8)) & 15) + 1;
}

struct IQ2_XXS : IQ2Format<256, kIQ2XXSPacked> {
  static constexpr int kBytes = 66, kWords = 16;
  static constexpr int kGroup = 32;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    head.d = half_low(edge) * 0.125f;
    head.dmin = vf{};
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {  // four index bytes, then sign indices and scale
      head.points[2 * g] = byte_pair(words[2 * g], 0);
      head.points[2 * g + 1] = byte_pair(words[2 * g], 1);
      head.scales[g] = 2 * shr(words[2 * g + 1], 28) + 1;
      head.signs[g] = packed_signs(words[2 * g + 1]);
    }
    lookup_ahead<256>(kIQ2XXSPacked, head.points);
  }
};

struct IQ2_XS : IQ2Format<512, kIQ2XSPacked> {
  static constexpr int kBytes = 74, kWords = 18;
  static constexpr int kGroup = 16;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    head.d = half_low(edge) * 0.125f;
    head.dmin = vf{};
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) head.points[k] = words[k] & 0x01FF01FF;
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {  // the sign index stands above the index of the point
      const vi a = shr(words[2 * g], 9) & 0x007F007F, b = shr(words[2 * g + 1], 9) & 0x007F007F;
      head.signs[g] = complete_signs(merge_bits(0xFFFF, a, b << 16) | merge_bits(0xFFFF, shr(a, 16), b) << 8);
    }
    lookup_ahead<512>(kIQ2XSPacked, head.points);
    nibble_scales(words + 16, head.scales);
  }
};

struct IQ2_S : IQ2Format<1024, kIQ2SPacked> {
  static constexpr int kBytes = 82, kWords = 20;
  static constexpr int kGroup = 16;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    head.d = half_low(edge) * 0.125f;
    head.dmin = vf{};
    nibble_scales(words + 18, head.scales);
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) {
      const vi high = shr(words[16 + k / 8], 4 * (k % 8));  // two bits a point
      head.points[k] = byte_pair(words[k / 2], k % 2) | (high << 8 & 0x300) | (high << 22 & 0x03000000);
    }
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) head.signs[g] = words[8 + g];
    lookup_ahead<1024>(kIQ2SPacked, head.points);
  }
};

/// iq3: points of four elements; vectors 4g..4g+3 hold points 0 and 2, 1 and 3, 4 and 6, 5 and 7 of group g.
template <int kEntries, const std::uint16_t* kTable, const std::int8_t* kValues>
struct IQ3Format : GridFormat {
  static constexpr int kGroup = 32;
  using Head = GridHead<32>;
  static HK_INLINE void sub(const vi*, int g, const Head& head, vi* steps) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const vi even = lookup_words<kEntries>(kTable, head.points[4 * g + 2 * h]),
               odd = lookup_words<kEntries>(kTable, head.points[4 * g + 2 * h + 1]);
      signed_steps(merge_bits(kLowNibbles, even, odd << 4), merge_bits(kLowNibbles, shr(even, 4), odd), head.signs[g],
                   h, kValues, steps + 4 * h);
    }
  }
};

struct IQ3_XXS : IQ3Format<256, kIQ3XXSPacked, kIQ3XXSValues> {
  static constexpr int kBytes = 98, kWords = 24;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    head.d = half_low(edge) * 0.25f;
    head.dmin = vf{};
#pragma GCC unroll 32
    for (int k = 0; k < 32; ++k) head.points[k] = shr(words[k / 2], 8 * (k % 2)) & 0x00FF00FF;
    lookup_ahead<256>(kIQ3XXSPacked, head.points);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      head.scales[g] = 2 * shr(words[16 + g], 28) + 1;
      head.signs[g] = packed_signs(words[16 + g]);
    }
  }
};

struct IQ3_S : IQ3Format<512, kIQ3SPacked, kIQ3SValues> {
  static constexpr int kBytes = 110, kWords = 27;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    head.d = half_low(edge);
    head.dmin = vf{};
#pragma GCC unroll 32
    for (int k = 0; k < 32; ++k) {
      const vi high = shr(words[16 + k / 16], 4 * (k % 16 / 2) + k % 2);  // one bit a point
      head.points[k] = (shr(words[k / 2], 8 * (k % 2)) & 0x00FF00FF) | (high << 8 & 0x100) | (high << 22 & 0x01000000);
    }
    lookup_ahead<512>(kIQ3SPacked, head.points);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      head.signs[g] = words[18 + g];
      head.scales[g] = 2 * (shr(words[26], 4 * g) & 15) + 1;
    }
  }
};

/// iq1: a weight is a grid value -1, 0, 1 plus an offset of +-1/8. Eight times that, plus the bias, is 8 (grid + 1) + 0
/// or 2.
struct IQ1Format : GridFormat {
  static constexpr int kBias = 9;
  struct Head : GridHead<16> {
    vi high[4];  ///< the index bits above the first eight, and the signs of the offsets
  };
  /// Indices are made of a byte and of three bits of `high`; the second point's three stand `kDistance` further.
  template <int kDistance>
  static HK_INLINE vi index(vi low, int half, vi high) {
    return byte_pair(low, half) | (high << 8 & 0x700) | (high << (24 - kDistance) & 0x07000000);
  }
  /// `offsets`: 0 or 2 for every byte.
  static HK_INLINE void offset_steps(vi points, vi offsets, vi* steps) {
    constexpr std::int32_t kLevels = 0x18181818;
    steps[0] = (points << 3 & kLevels) | offsets;
    steps[1] = (points << 1 & kLevels) | offsets;
    steps[2] = (shr(points, 1) & kLevels) | offsets;
    steps[3] = (shr(points, 3) & kLevels) | offsets;
  }
};

struct IQ1_S : IQ1Format {
  static constexpr int kBytes = 50, kWords = 12;
  static constexpr int kGroup = 32;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    head.d = half_low(edge) * 0.125f;
    head.dmin = vf{};
    const vi* low = words;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) head.high[k] = words[8 + k];
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k)  // 16 bits a group: four times three, the scale, the sign of the offset
      head.points[k] = index<3>(low[k / 2], k % 2, shr(head.high[k / 4], 16 * (k / 2 % 2) + 6 * (k % 2)));
    lookup_ahead<2048>(kIQ1SPacked, head.points);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) head.scales[g] = 2 * (shr(head.high[g / 2], 16 * (g % 2) + 12) & 7) + 1;
  }
  static HK_INLINE void sub(const vi*, int g, const Head& head, vi* steps) {
    const vi positive = ((g % 2 == 0 ? head.high[g / 2] << 16 : head.high[g / 2]) >> 31) + 1;
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h)
      offset_steps(lookup_words<2048>(kIQ1SPacked, head.points[2 * g + h]), positive * 0x02020202, steps + 4 * h);
  }
};

struct IQ1_M : IQ1Format {
  static constexpr int kBytes = 56, kWords = 14;
  static constexpr int kFirst = 0;
  static constexpr Edge kEdge = Edge::kNone;
  static constexpr int kGroup = 16;
  static HK_INLINE void head(const vi* words, vi, Head& head) {
    const vi a = words[12], b = words[13];  // four 16-bit words: four 3-bit scales, a nibble of d on top
    head.d = half_low((shr(a, 12) & 0xF) | (shr(a, 24) & 0xF0) | (shr(b, 4) & 0xF00) | (shr(b, 16) & 0xF000)) * 0.125f;
    head.dmin = vf{};
#pragma GCC unroll 16
    for (int t = 0; t < 16; ++t) {
      const vi word = shr(t < 8 ? a : b, 16 * (t / 4 % 2));
      head.scales[t] = 2 * (shr(word, 3 * (t % 4)) & 7) + 1;
    }
    const vi* low = words;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) head.high[k] = words[8 + k];
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k)  // a nibble a point: three bits, the sign of the offset
      head.points[k] = index<4>(low[k / 2], k % 2, shr(head.high[k / 4], 8 * (k % 4)));
    lookup_ahead<2048>(kIQ1SPacked, head.points);
  }
  static HK_INLINE void sub(const vi*, int g, const Head& head, vi* steps) {
    const vi nibbles = shr(head.high[g / 2], 16 * (g % 2));
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const vi negative = (shr(nibbles, 8 * h + 2) & 2) | ((h == 0 ? nibbles << 10 : nibbles << 2) & 0x20000);
      offset_steps(lookup_words<2048>(kIQ1SPacked, head.points[2 * g + h]), 0x02020202 - (negative | negative << 8),
                   steps + 4 * h);
    }
  }
};

}  // namespace
}  // namespace hk::kernels
