// Unpackers of the Super family with regular codes: 256 elements with integer group scales under one float scale, W
// rows at a time. The grid formats are in unpack_grid.h.
//
// Part of the level sources (see vec.h; words, steps and biases as in unpack_block.h). A super-block comes as kWords
// words from byte kFirst on, and a word at its edge when that leaves two bytes over (kEdge). It is taken in two calls:
//   head(): group scales (kGroup elements each) as int lanes, group minima as pairs of int16, d and -dmin as float
//   lanes; sub(c): the steps of kSub elements.
// kFolded formats multiply the group scale into the byte itself (it fits), so that a super-block is one integer sum.
// Layouts: QUANTS.md section 4.
#pragma once

#include "kernels/isa/unpack_block.h"

namespace hk::kernels {
namespace {

template <int kGroupCount, int kMinPairs>
struct SuperHead {
  vi scales[kGroupCount > 0 ? kGroupCount : 1];  ///< for kFolded formats: whatever sub() needs
  vi mins[kMinPairs > 0 ? kMinPairs : 1];        ///< int16 pairs: minima of groups 2j and 2j + 1
  vf d, dmin;                                    ///< dmin negated
};

enum class Edge {
  kNone,
  kFront,  ///< the first two bytes: the low half of the edge word
  kBack    ///< the last two bytes: the high half
};

struct SuperFormat {
  static constexpr int kFirst = 0;
  static constexpr Edge kEdge = Edge::kNone;
  static constexpr bool kWide = false;
  static constexpr bool kFolded = false;
  static constexpr bool kPaired = false;  ///< scales are int16 pairs of neighbouring groups, whose sums fit int16
  static constexpr bool kHalves = false;  ///< scales are int16 pairs for the halves of every lane (unpack_grid_vbmi.h)
  /// Steps have their elements in another order: reorder() brings activations into it, restore() the steps of sub()
  /// back.
  static constexpr bool kReordered = false;
  static constexpr int kMinGroup = 0;  ///< elements a minimum covers; 0: none
};

/// Bytes a and b of every lane as a pair of 16-bit words.
template <int A, int B>
HK_INLINE vi bytes_apart(vi bytes) {
  alignas(16) static constexpr std::int8_t kPattern[16] = {A,     -1, B,     -1, A + 4,  -1, B + 4,  -1,
                                                           A + 8, -1, B + 8, -1, A + 12, -1, B + 12, -1};
  return permute16(bytes, kPattern);
}
/// Byte k of `bytes` in every lane, zero-extended.
HK_INLINE vi byte_of(vi bytes, int k) { return shr(bytes, 8 * k) & 0xFF; }
/// Bytes 2h and 2h + 1 as a pair of int16.
HK_INLINE vi byte_pair(vi bytes, int h) { return h == 0 ? bytes_apart<0, 1>(bytes) : bytes_apart<2, 3>(bytes); }
/// Byte k as both words.
HK_INLINE vi byte_twice(vi bytes, int k) {
  return k == 0   ? bytes_apart<0, 0>(bytes)
         : k == 1 ? bytes_apart<1, 1>(bytes)
         : k == 2 ? bytes_apart<2, 2>(bytes)
                  : bytes_apart<3, 3>(bytes);
}

/// The 6-bit scales and minima of q4_k and q5_k from the three scale dwords of each row, as bytes in group order.
HK_INLINE void unpack_scales_k4(const vi* s, vi* scales, vi* mins) {
  scales[0] = s[0] & 0x3F3F3F3F;
  mins[0] = s[1] & 0x3F3F3F3F;
  scales[1] = (s[2] & kLowNibbles) | (shr(s[0], 2) & 0x30303030);
  mins[1] = (shr(s[2], 4) & kLowNibbles) | (shr(s[1], 2) & 0x30303030);
}

struct K4Format : SuperFormat {
  static constexpr int kBias = 0;
  static constexpr int kGroup = 32;
  static constexpr int kMinGroup = 32;
  static constexpr int kSub = 64;
  using Head = SuperHead<8, 4>;
  static HK_INLINE void head(const vi* words, vi, Head& head) {
    vi scales[2], mins[2];
    split_halves(words[0], &head.d, &head.dmin);
    head.dmin = -head.dmin;
    unpack_scales_k4(words + 1, scales, mins);
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) head.scales[g] = byte_of(scales[g / 4], g % 4);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) head.mins[j] = byte_pair(mins[j / 2], j % 2);
  }
};

struct Q4_K : K4Format {
  static constexpr int kBytes = 144, kWords = 36;
  static HK_INLINE void sub(const vi* words, int c, const Head&, vi* steps) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const vi* packed = words + 4 + 8 * c + 4 * half;
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        steps[4 * half + j] = packed[j] & kLowNibbles;
        steps[8 + 4 * half + j] = shr(packed[j], 4) & kLowNibbles;
      }
    }
  }
};

struct Q5_K : K4Format {
  static constexpr int kBytes = 176, kWords = 44;
  static HK_INLINE void sub(const vi* words, int c, const Head&, vi* steps) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const vi *packed = words + 12 + 8 * c + 4 * half, *high = words + 4 + 4 * half;
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const vi bits = shr(high[j], 2 * c);
        steps[4 * half + j] = (packed[j] & kLowNibbles) | ((bits & 0x01010101) << 4);
        steps[8 + 4 * half + j] = (shr(packed[j], 4) & kLowNibbles) | ((bits & 0x02020202) << 3);
      }
    }
  }
};

struct Q6_K : SuperFormat {
  static constexpr int kBytes = 210, kWords = 52;
  static constexpr Edge kEdge = Edge::kBack;
  static constexpr int kBias = 32;
  static constexpr int kGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<16, 0>;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
#pragma GCC unroll 16
    for (int g = 0; g < 16; ++g) head.scales[g] = (words[48 + g / 4] << (24 - 8 * (g % 4))) >> 24;
    head.d = half_high(edge);
    head.dmin = vf{};
  }
  static HK_INLINE void sub(const vi* words, int h, const Head&, vi* steps) {
#pragma GCC unroll 2
    for (int q = 0; q < 2; ++q) {
      const vi* high = words + 32 + 8 * h + 4 * q;
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        const vi* low = words + 16 * h + 8 * k + 4 * q;
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          steps[8 * k + 4 * q + j] = (low[j] & kLowNibbles) | ((shr(high[j], 2 * k) & 0x03030303) << 4);
          steps[8 * (k + 2) + 4 * q + j] =
              (shr(low[j], 4) & kLowNibbles) | ((shr(high[j], 2 * k + 4) & 0x03030303) << 4);
        }
      }
    }
  }
};

/// Group scale times code is at most 15 * 3.
struct Q2_K : SuperFormat {
  static constexpr int kBytes = 84, kWords = 21;
  static constexpr int kBias = 0;
  static constexpr bool kFolded = true;
  static constexpr int kGroup = 16;
  static constexpr int kMinGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<16, 8>;
  static HK_INLINE void head(const vi* words, vi, Head& head) {
#pragma GCC unroll 16
    for (int g = 0; g < 16; ++g) head.scales[g] = byte_twice(words[g / 4] & kLowNibbles, g % 4);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) head.mins[j] = byte_pair(shr(words[j / 2], 4) & kLowNibbles, j % 2);
    split_halves(words[20], &head.d, &head.dmin);
    head.dmin = -head.dmin;
  }
  static HK_INLINE void sub(const vi* words, int h, const Head& head, vi* steps) {
#pragma GCC unroll 2
    for (int q = 0; q < 2; ++q) {
      const vi* packed = words + 4 + 8 * h + 4 * q;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const vi scale = head.scales[8 * h + 2 * k + q];
        // bytes stay below 256: no carry between the two bytes of a word
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) steps[8 * k + 4 * q + j] = mul_words(shr(packed[j], 2 * k) & 0x03030303, scale);
      }
    }
  }
};

/// For few activations: codes as they are, so that the products with the scales are not taken element by element.
struct Q2_KStream : Q2_K {
  static constexpr bool kFolded = false;
  static constexpr bool kPaired = true;
  static HK_INLINE void head(const vi* words, vi, Head& head) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      head.scales[j] = byte_pair(words[j / 2] & kLowNibbles, j % 2);
      head.mins[j] = byte_pair(shr(words[j / 2], 4) & kLowNibbles, j % 2);
    }
    split_halves(words[20], &head.d, &head.dmin);
    head.dmin = -head.dmin;
  }
  static HK_INLINE void sub(const vi* words, int h, const Head&, vi* steps) {
    const vi* packed = words + 4 + 8 * h;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) steps[8 * k + j] = shr(packed[j], 2 * k) & 0x03030303;
    }
  }
};

/// The sixteen 6-bit scales of q3_k as bytes in group order.
HK_INLINE void unpack_scales_k3(const vi* words, vi* scales) {
  const vi a = words[24], b = words[25], c = words[26];
  scales[0] = (a & kLowNibbles) | ((c & 0x03030303) << 4);
  scales[1] = (b & kLowNibbles) | ((shr(c, 2) & 0x03030303) << 4);
  scales[2] = (shr(a, 4) & kLowNibbles) | ((shr(c, 4) & 0x03030303) << 4);
  scales[3] = (shr(b, 4) & kLowNibbles) | ((shr(c, 6) & 0x03030303) << 4);
}

/// For few activations: codes of three bits, scales beside them. Cheaper to unpack than Q3_K, dearer to multiply; the
/// integers come out the same.
struct Q3_KStream : SuperFormat {
  static constexpr int kBytes = 110, kWords = 27;
  static constexpr Edge kEdge = Edge::kBack;
  static constexpr bool kPaired = true;
  static constexpr int kBias = 4;
  static constexpr int kGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<8, 0>;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    vi scales[4];
    unpack_scales_k3(words, scales);
    head.d = half_high(edge);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) head.scales[j] = sub_words(byte_pair(scales[j / 2], j % 2), set_i(0x00200020));
    head.dmin = vf{};
  }
  static HK_INLINE void sub(const vi* words, int h, const Head&, vi* steps) {
    const vi* packed = words + 8 + 8 * h;
    vi high[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) high[j] = shr(words[j], 4 * h);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j)
        steps[8 * k + j] = (shr(packed[j], 2 * k) & 0x03030303) | ((high[j] << 2 >> k) & 0x04040404);
    }
  }
};

/// -(group scale * code) is in -128..124 and fits a byte; d is negated to match.
struct Q3_K : SuperFormat {
  static constexpr int kBytes = 110, kWords = 27;
  static constexpr Edge kEdge = Edge::kBack;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  static constexpr bool kFolded = true;
  static constexpr int kGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<16, 0>;
  static HK_INLINE void head(const vi* words, vi edge, Head& head) {
    vi s[4];
    unpack_scales_k3(words, s);
    // t = 64 - s, in 1..64, as two words
#pragma GCC unroll 16
    for (int g = 0; g < 16; ++g) head.scales[g] = byte_twice(sub_bytes(set_i(0x40404040), s[g / 4]), g % 4);
    head.d = -half_high(edge);
    head.dmin = vf{};
  }
  /// With the code q = low + 4 h - 4 (h the high bit) and the scale s - 32 = 32 - t:
  /// -q (32 - t) = low t - 32 low + h (4 t - 128) - 4 t + 128, all modulo 256 in every byte.
  static HK_INLINE void sub(const vi* words, int h, const Head& head, vi* steps) {
#pragma GCC unroll 2
    for (int q = 0; q < 2; ++q) {
      const vi *packed = words + 8 + 8 * h + 4 * q, *mask = words + 4 * q;
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const vi t = head.scales[8 * h + 2 * k + q];
        const vi t4 = (t << 2) & 0x00FF00FF;
        const vi four_t = t4 | (t4 << 8);
        const vi set = sub_bytes(four_t, set_i(static_cast<std::int32_t>(0x80808080)));
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          const vi low = shr(packed[j], 2 * k) & 0x03030303;
          const vi high = byte_mask(shr(mask[j], 4 * h + k) & 0x01010101);
          const vi product = sub_bytes(mul_words(low, t), low << 5);
          // wide() adds 128 again where the level stores unsigned bytes
          steps[8 * k + 4 * q + j] = wide(sub_bytes(sub_bytes(add_bytes(product, high & set), four_t),
                                                    set_i(static_cast<std::int32_t>(0x80808080))));
        }
      }
    }
  }
};

struct IQ4_XS : SuperFormat {
  static constexpr int kBytes = 136, kWords = 34;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  static constexpr int kGroup = 32;
  static constexpr int kSub = 32;
  using Head = SuperHead<8, 0>;
  static HK_INLINE void head(const vi* words, vi, Head& head) {
    head.d = half_low(words[0]);
    head.dmin = vf{};
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      head.scales[g] = ((shr(words[1], 4 * g) & 15) | ((shr(words[0], 16 + 2 * g) & 3) << 4)) - 32;
    }
  }
  static HK_INLINE void sub(const vi* words, int g, const Head&, vi* steps) {
    unpack_nibbles<0>(words + 2 + 4 * g, steps);
#pragma GCC unroll 8
    for (int u = 0; u < 8; ++u) steps[u] = wide(lookup16(kIQ4NLValues, steps[u]));
  }
};

struct TernaryFormat : SuperFormat {
  static constexpr int kBias = 1;
  static constexpr bool kFolded = true;
  static constexpr int kGroup = 256;
  using Head = SuperHead<0, 0>;
};

struct TQ2_0 : TernaryFormat {
  static constexpr int kBytes = 66, kWords = 16;
  static constexpr Edge kEdge = Edge::kBack;
  static constexpr int kSub = 128;
  static HK_INLINE void head(const vi*, vi edge, Head& head) {
    head.d = half_high(edge);
    head.dmin = vf{};
  }
  static HK_INLINE void sub(const vi* words, int h, const Head&, vi* steps) {
    const vi* packed = words + 8 * h;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) steps[8 * k + j] = shr(packed[j], 2 * k) & 0x03030303;
    }
  }
};

struct TQ1_0 : TernaryFormat {
  static constexpr int kBytes = 54, kWords = 13;
  static constexpr Edge kEdge = Edge::kBack;
  static constexpr int kSub = 256;
  static HK_INLINE void head(const vi*, vi edge, Head& head) {
    head.d = half_high(edge);
    head.dmin = vf{};
  }
  /// Digits of four bytes, most significant first: the integer part of three times the fraction, of which the rest is
  /// the next fraction (QUANTS.md 4.24).
  template <int kDigits>
  static HK_INLINE void digits(vi bytes, vi* steps, int distance) {
#pragma GCC unroll 5
    for (int n = 0; n < kDigits; ++n) {
      steps[n * distance] = times_three_high(bytes);
      bytes = opaque(add_bytes(bytes, add_bytes(bytes, bytes)));  // else it becomes multiplications by 9, 27 and 81
    }
  }
  static HK_INLINE void sub(const vi* words, int, const Head&, vi* steps) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) digits<5>(words[j], steps + j, 8);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) digits<5>(words[8 + j], steps + 40 + j, 4);
    digits<4>(words[12], steps + 60, 1);
  }
};

}  // namespace
}  // namespace hk::kernels
