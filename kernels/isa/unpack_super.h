// Unpackers of the Super family with regular codes: 256 elements with integer group scales under one float scale, W
// rows at a time. The grid formats are in unpack_grid.h.
//
// Part of the level sources (see vec.h; "steps" and biases as in unpack_block.h). A super-block is taken in two calls:
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

struct SuperFormat {
  static constexpr bool kWide = false;
  static constexpr bool kFolded = false;
  static constexpr bool kPairOrder = false;  ///< see unpack_grid.h
  static constexpr int kMinGroup = 0;        ///< elements a minimum covers; 0: none
  /// Which step of the kSub elements the u-th result of sub() is.
  static constexpr int position(int u) { return u; }
};

/// Byte k of `bytes` in every lane, zero-extended.
HK_INLINE vi byte_of(vi bytes, int k) { return shr(bytes, 8 * k) & 0xFF; }
/// Bytes 2h and 2h + 1 as a pair of int16.
HK_INLINE vi byte_pair(vi bytes, int h) {
  const vi two = shr(bytes, 16 * h);
  return (two & 0xFF) | ((two << 8) & 0x00FF0000);
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
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    vi words[4], scales[2], mins[2];
    load_rows16(rows, offset, words);
    head.d = half_low(words[0]);
    head.dmin = -half_high(words[0]);
    unpack_scales_k4(words + 1, scales, mins);
    for (int g = 0; g < 8; ++g) head.scales[g] = byte_of(scales[g / 4], g % 4);
    for (int j = 0; j < 4; ++j) head.mins[j] = byte_pair(mins[j / 2], j % 2);
  }
};

struct Q4_K : K4Format {
  static constexpr int kBytes = 144;
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int c, const Head&, vi* steps) {
    for (int half = 0; half < 2; ++half) {
      vi packed[4];
      load_rows16(rows, offset + 16 + 32 * c + 16 * half, packed);
      for (int j = 0; j < 4; ++j) {
        steps[4 * half + j] = packed[j] & kLowNibbles;
        steps[8 + 4 * half + j] = shr(packed[j], 4) & kLowNibbles;
      }
    }
  }
};

struct Q5_K : K4Format {
  static constexpr int kBytes = 176;
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int c, const Head&, vi* steps) {
    for (int half = 0; half < 2; ++half) {
      vi packed[4], high[4];
      load_rows16(rows, offset + 48 + 32 * c + 16 * half, packed);
      load_rows16(rows, offset + 16 + 16 * half, high);
      for (int j = 0; j < 4; ++j) {
        const vi bits = shr(high[j], 2 * c);
        steps[4 * half + j] = (packed[j] & kLowNibbles) | ((bits & 0x01010101) << 4);
        steps[8 + 4 * half + j] = (shr(packed[j], 4) & kLowNibbles) | ((bits & 0x02020202) << 3);
      }
    }
  }
};

struct Q6_K : SuperFormat {
  static constexpr int kBytes = 210;
  static constexpr int kBias = 32;
  static constexpr int kGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<16, 0>;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    vi words[4];
    load_rows16(rows, offset + 192, words);
    for (int g = 0; g < 16; ++g) head.scales[g] = (words[g / 4] << (24 - 8 * (g % 4))) >> 24;
    head.d = half_high(load_rows4_before(rows, offset + 210));
    head.dmin = vf{};
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int h, const Head&, vi* steps) {
    for (int q = 0; q < 2; ++q) {
      vi high[4];
      load_rows16(rows, offset + 128 + 32 * h + 16 * q, high);
      for (int k = 0; k < 2; ++k) {
        vi low[4];
        load_rows16(rows, offset + 64 * h + 32 * k + 16 * q, low);
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
  static constexpr int kBytes = 84;
  static constexpr int kBias = 0;
  static constexpr bool kFolded = true;
  static constexpr int kGroup = 16;
  static constexpr int kMinGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<16, 8>;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    vi words[4];
    load_rows16(rows, offset, words);
    for (int g = 0; g < 16; ++g) head.scales[g] = (byte_of(words[g / 4], g % 4) & 15) * 0x00010001;
    for (int j = 0; j < 8; ++j) head.mins[j] = byte_pair(shr(words[j / 2], 4) & kLowNibbles, j % 2);
    const vi scales = load_rows4_before(rows, offset + 84);
    head.d = half_low(scales);
    head.dmin = -half_high(scales);
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int h, const Head& head, vi* steps) {
    for (int q = 0; q < 2; ++q) {
      vi packed[4];
      load_rows16(rows, offset + 16 + 32 * h + 16 * q, packed);
      for (int k = 0; k < 4; ++k) {
        const vi scale = head.scales[8 * h + 2 * k + q];
        // bytes stay below 256: no carry between the two bytes of a word
        for (int j = 0; j < 4; ++j) steps[8 * k + 4 * q + j] = mul_words(shr(packed[j], 2 * k) & 0x03030303, scale);
      }
    }
  }
};

/// The sixteen 6-bit scales of q3_k as bytes in group order, and d in the high half of the last dword. The bytes from
/// `offset` + 94 on are 2 of codes, 12 of scales and d.
HK_INLINE void unpack_scales_k3(const std::uint8_t* const* rows, std::size_t offset, vi* scales, vf* d) {
  vi tail[4];
  load_rows16(rows, offset + 94, tail);
  const vi a = shr(tail[0], 16) | (tail[1] << 16), b = shr(tail[1], 16) | (tail[2] << 16);
  const vi c = shr(tail[2], 16) | (tail[3] << 16);
  scales[0] = (a & kLowNibbles) | ((c & 0x03030303) << 4);
  scales[1] = (b & kLowNibbles) | ((shr(c, 2) & 0x03030303) << 4);
  scales[2] = (shr(a, 4) & kLowNibbles) | ((shr(c, 4) & 0x03030303) << 4);
  scales[3] = (shr(b, 4) & kLowNibbles) | ((shr(c, 6) & 0x03030303) << 4);
  *d = half_high(tail[3]);
}

/// For one activation: codes of three bits, scales beside them. Cheaper to unpack than Q3_K, dearer to multiply; the
/// integers come out the same.
struct Q3_KStream : SuperFormat {
  static constexpr int kBytes = 110;
  static constexpr int kBias = 4;
  static constexpr int kGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<16, 0>;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    vi scales[4];
    unpack_scales_k3(rows, offset, scales, &head.d);
    for (int g = 0; g < 16; ++g) head.scales[g] = byte_of(scales[g / 4], g % 4) - 32;
    head.dmin = vf{};
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int h, const Head&, vi* steps) {
    vi packed[8], high[8];
    for (int q = 0; q < 2; ++q) {
      load_rows16(rows, offset + 32 + 32 * h + 16 * q, packed + 4 * q);
      load_rows16(rows, offset + 16 * q, high + 4 * q);
    }
    for (int j = 0; j < 8; ++j) high[j] = shr(high[j], 4 * h);
    for (int k = 0; k < 4; ++k) {
      for (int j = 0; j < 8; ++j)
        steps[8 * k + j] = (shr(packed[j], 2 * k) & 0x03030303) | ((high[j] << 2 >> k) & 0x04040404);
    }
  }
};

/// -(group scale * code) is in -128..124 and fits a byte; d is negated to match.
struct Q3_K : SuperFormat {
  static constexpr int kBytes = 110;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  static constexpr bool kFolded = true;
  static constexpr int kGroup = 16;
  static constexpr int kSub = 128;
  using Head = SuperHead<16, 0>;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    vi s[4];
    unpack_scales_k3(rows, offset, s, &head.d);
    // t = 64 - s, in 1..64, as two words
    for (int g = 0; g < 16; ++g) head.scales[g] = (64 - byte_of(s[g / 4], g % 4)) * 0x00010001;
    head.d = -head.d;
    head.dmin = vf{};
  }
  /// With the code q = low + 4 h - 4 (h the high bit) and the scale s - 32 = 32 - t:
  /// -q (32 - t) = low t - 32 low + h (4 t - 128) - 4 t + 128, all modulo 256 in every byte.
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int h, const Head& head, vi* steps) {
    for (int q = 0; q < 2; ++q) {
      vi packed[4], mask[4];
      load_rows16(rows, offset + 32 + 32 * h + 16 * q, packed);
      load_rows16(rows, offset + 16 * q, mask);
      for (int k = 0; k < 4; ++k) {
        const vi t = head.scales[8 * h + 2 * k + q];
        const vi t4 = (t << 2) & 0x00FF00FF;
        const vi four_t = t4 | (t4 << 8);
        const vi set = sub_bytes(four_t, set_i(static_cast<std::int32_t>(0x80808080)));
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
  static constexpr int kBytes = 136;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  static constexpr int kGroup = 32;
  static constexpr int kSub = 32;
  using Head = SuperHead<8, 0>;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    vi words[4];
    load_rows16(rows, offset, words);
    head.d = half_low(words[0]);
    head.dmin = vf{};
    for (int g = 0; g < 8; ++g) {
      head.scales[g] = ((shr(words[1], 4 * g) & 15) | ((shr(words[0], 16 + 2 * g) & 3) << 4)) - 32;
    }
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head&, vi* steps) {
    vi packed[4];
    load_rows16(rows, offset + 8 + 16 * g, packed);
    unpack_nibbles<0>(packed, steps);
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
  static constexpr int kBytes = 66;
  static constexpr int kSub = 128;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_high(load_rows4_before(rows, offset + 66));
    head.dmin = vf{};
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int h, const Head&, vi* steps) {
    vi packed[8];
    for (int q = 0; q < 2; ++q) load_rows16(rows, offset + 32 * h + 16 * q, packed + 4 * q);
    for (int k = 0; k < 4; ++k) {
      for (int j = 0; j < 8; ++j) steps[8 * k + j] = shr(packed[j], 2 * k) & 0x03030303;
    }
  }
};

struct TQ1_0 : TernaryFormat {
  static constexpr int kBytes = 54;
  static constexpr int kSub = 256;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_high(load_rows4_before(rows, offset + 54));
    head.dmin = vf{};
  }
  /// Digits of four bytes, most significant first: the integer part of three times the fraction, of which the rest is
  /// the next fraction (QUANTS.md 4.24).
  template <int kDigits>
  static HK_INLINE void digits(vi bytes, vi* steps) {
#pragma GCC unroll 5
    for (int n = 0; n < kDigits; ++n) {
      steps[n] = times_three_high(bytes);
      bytes = opaque(add_bytes(bytes, add_bytes(bytes, bytes)));  // else it becomes multiplications by 9, 27 and 81
    }
  }
  /// sub() yields the digits of a byte one after the other; in the row they stand far apart.
  static constexpr int position(int u) {
    if (u >= 60) return u;
    const int n = u % 5, j = u / 5;
    return j < 8 ? 8 * n + j : 40 + 4 * n + (j - 8);
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int, const Head&, vi* steps) {
    vi packed[4];
#pragma GCC unroll 3
    for (int q = 0; q < 3; ++q) {
      load_rows16(rows, offset + 16 * q, packed);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) digits<5>(packed[j], steps + 20 * q + 5 * j);
    }
    load_rows16(rows, offset + 38, packed);  // the last dword but one holds the 4 short bytes
    digits<4>(shr(packed[2], 16) | (packed[3] << 16), steps + 60);
  }
};

}  // namespace
}  // namespace hk::kernels
