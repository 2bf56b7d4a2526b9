// Unpackers of the grid formats (iq1, iq2, iq3): codebook points are looked up row by row, everything else W rows at a
// time.
//
// Part of the level sources (see vec.h and unpack_super.h). A gather of W codebook words costs more than W scalar loads
// on the CPUs this was measured on, so each row's 16 bytes of grid points are assembled from plain loads and then
// transposed like stored bytes. Signs and offsets are applied to the transposed lanes. Layouts: QUANTS.md 4.16 to 4.23.
#pragma once

#include "kernels/isa/unpack_super.h"

namespace hk::kernels {
namespace {

typedef std::uint64_t two_u64 __attribute__((vector_size(16)));
typedef std::uint32_t four_u32 __attribute__((vector_size(16)));

/// The 32 bytes of a group as eight steps; `point(r, l)` is the codebook word of row r, elements 8l..8l+7.
template <typename Point>
HK_INLINE void grid_steps8(const Point& point, vi* steps) {
  for (int h = 0; h < 2; ++h) {
    transpose16(
        [&](int r) HK_LAMBDA_INLINE {
          return (v16)two_u64{point(r, 2 * h), point(r, 2 * h + 1)};
        },
        steps + 4 * h);
  }
}
/// The same for codebooks of four elements; `point(r, l)` covers elements 4l..4l+3.
template <typename Point>
HK_INLINE void grid_steps4(const Point& point, vi* steps) {
  for (int h = 0; h < 2; ++h) {
    transpose16(
        [&](int r) HK_LAMBDA_INLINE {
          return (v16)four_u32{point(r, 4 * h), point(r, 4 * h + 1), point(r, 4 * h + 2), point(r, 4 * h + 3)};
        },
        steps + 4 * h);
  }
}

/// Bias of the signed grid formats: magnitudes are at most 62, so biased bytes stay within 0..127 on every level.
inline constexpr int kGridBias = 64;

/// Gives 32 magnitudes their signs and the bias: bit j of byte l of `signs` set makes element 8l + j negative.
HK_INLINE void apply_signs(vi signs, vi* steps) {
  for (int u = 0; u < 8; ++u) {
    const vi negative = byte_mask(spread_bits(shr(signs, 4 * u)));
    // (x ^ m) - m is -x where m is all ones
    steps[u] = add_bytes(steps[u] ^ negative, sub_bytes(set_i(0x01010101 * kGridBias), negative));
  }
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
  return complete_signs((word & 0x7F) | ((word << 1) & 0x7F00) | ((word << 2) & 0x7F0000) | ((word << 3) & 0x7F000000));
}

struct GridFormat : SuperFormat {
  static constexpr int kBias = kGridBias;
  static constexpr int kSub = 32;
};

struct SignedHead : SuperHead<16, 0> {
  vi signs[8];  ///< sign bytes of every group of 32
};

struct IQ2_XXS : GridFormat {
  static constexpr int kBytes = 66;
  static constexpr int kGroup = 32;
  using Head = SignedHead;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_low(load_rows4(rows, offset)) * 0.125f;
    head.dmin = vf{};
    for (int j = 0; j < 4; ++j) {
      vi words[4];
      load_rows16(rows, offset + 2 + 16 * j, words);
      for (int k = 0; k < 2; ++k) {
        head.scales[2 * j + k] = 2 * shr(words[2 * k + 1], 28) + 1;
        head.signs[2 * j + k] = packed_signs(words[2 * k + 1]);
      }
    }
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head& head, vi* steps) {
    grid_steps8([&](int r, int l) HK_LAMBDA_INLINE { return kIQ2XXSGrid[rows[r][offset + 2 + 8 * g + l]]; }, steps);
    apply_signs(head.signs[g], steps);
  }
};

/// Nibble scales of 16 elements each, in two dwords, to 2s + 1.
HK_INLINE void nibble_scales(const vi* words, vi* scales) {
  for (int g = 0; g < 16; ++g) scales[g] = 2 * (shr(words[g / 8], 4 * (g % 8)) & 15) + 1;
}

struct IQ2_XS : GridFormat {
  static constexpr int kBytes = 74;
  static constexpr int kGroup = 16;
  using Head = SignedHead;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_low(load_rows4(rows, offset)) * 0.125f;
    head.dmin = vf{};
    vi words[4];
    load_rows16(rows, offset + 58, words);
    nibble_scales(words + 2, head.scales);
    for (int j = 0; j < 4; ++j) {
      load_rows16(rows, offset + 2 + 16 * j, words);
      for (int k = 0; k < 2; ++k) {
        const vi a = words[2 * k], b = words[2 * k + 1];  // two 16-bit codes each, the sign index in bits 9..15
        head.signs[2 * j + k] = complete_signs((shr(a, 9) & 0x7F) | (shr(a, 17) & 0x7F00) | ((b << 7) & 0x7F0000) |
                                               (shr(b, 1) & 0x7F000000));
      }
    }
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head& head, vi* steps) {
    grid_steps8([&](int r, int l)
                    HK_LAMBDA_INLINE { return kIQ2XSGrid[load16(rows[r] + offset + 2 + 8 * g + 2 * l) & 511]; },
                steps);
    apply_signs(head.signs[g], steps);
  }
};

struct IQ2_S : GridFormat {
  static constexpr int kBytes = 82;
  static constexpr int kGroup = 16;
  using Head = SignedHead;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_low(load_rows4(rows, offset)) * 0.125f;
    head.dmin = vf{};
    vi words[4];
    load_rows16(rows, offset + 66, words);
    nibble_scales(words + 2, head.scales);
    load_rows16(rows, offset + 34, head.signs);
    load_rows16(rows, offset + 50, head.signs + 4);
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head& head, vi* steps) {
    grid_steps8(
        [&](int r, int l) HK_LAMBDA_INLINE {
          const std::uint8_t* block = rows[r] + offset;
          return kIQ2SGrid[block[2 + 4 * g + l] | (block[66 + g] << (8 - 2 * l) & 0x300)];
        },
        steps);
    apply_signs(head.signs[g], steps);
  }
};

struct IQ3_XXS : GridFormat {
  static constexpr int kBytes = 98;
  static constexpr int kGroup = 32;
  using Head = SignedHead;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_low(load_rows4(rows, offset)) * 0.25f;
    head.dmin = vf{};
    for (int j = 0; j < 2; ++j) {
      vi words[4];
      load_rows16(rows, offset + 66 + 16 * j, words);
      for (int k = 0; k < 4; ++k) {
        head.scales[4 * j + k] = 2 * shr(words[k], 28) + 1;
        head.signs[4 * j + k] = packed_signs(words[k]);
      }
    }
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head& head, vi* steps) {
    grid_steps4([&](int r, int l) HK_LAMBDA_INLINE { return kIQ3XXSGrid[rows[r][offset + 2 + 8 * g + l]]; }, steps);
    apply_signs(head.signs[g], steps);
  }
};

struct IQ3_S : GridFormat {
  static constexpr int kBytes = 110;
  static constexpr int kGroup = 32;
  using Head = SignedHead;
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_low(load_rows4(rows, offset));
    head.dmin = vf{};
    const vi scales = load_rows4_before(rows, offset + 110);
    for (int g = 0; g < 8; ++g) head.scales[g] = 2 * (shr(scales, 4 * g) & 15) + 1;
    load_rows16(rows, offset + 74, head.signs);
    load_rows16(rows, offset + 90, head.signs + 4);
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head& head, vi* steps) {
    grid_steps4(
        [&](int r, int l) HK_LAMBDA_INLINE {
          const std::uint8_t* block = rows[r] + offset;
          return kIQ3SGrid[block[2 + 8 * g + l] | (block[66 + g] << (8 - l) & 0x100)];
        },
        steps);
    apply_signs(head.signs[g], steps);
  }
};

// iq1: a weight is a grid value -1, 0, 1 plus an offset of +-1/8. Eight times that, plus the bias, is 8 (grid + 1) + 0
// or 2.

inline constexpr int kTernaryGridBias = 9;
HK_INLINE void add_offsets(vi negative_bit, vi* steps) {
  const vi offset = ((negative_bit & 1) ^ 1) * 0x02020202;
  for (int u = 0; u < 2; ++u) steps[u] = (add_bytes(steps[u], set_i(0x01010101)) << 3) + offset;
}

struct IQ1_S : SuperFormat {
  static constexpr int kBytes = 50;
  static constexpr int kBias = kTernaryGridBias;
  static constexpr int kGroup = 32;
  static constexpr int kSub = 32;
  struct Head : SuperHead<8, 0> {
    vi offsets[8];  ///< bit 0 set: the group's offset is negative
  };
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    head.d = half_low(load_rows4(rows, offset)) * 0.125f;
    head.dmin = vf{};
    vi words[4];
    load_rows16(rows, offset + 34, words);
    for (int g = 0; g < 8; ++g) {
      const vi h = shr(words[g / 2], 16 * (g % 2));
      head.scales[g] = 2 * (shr(h, 12) & 7) + 1;
      head.offsets[g] = shr(h, 15);
    }
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head& head, vi* steps) {
    grid_steps8(
        [&](int r, int l) HK_LAMBDA_INLINE {
          const std::uint8_t* block = rows[r] + offset;
          const unsigned high = load16(block + 34 + 2 * g);
          return kIQ1SGrid[block[2 + 4 * g + l] | (high >> (3 * l) & 7U) << 8];
        },
        steps);
    for (int l = 0; l < 4; ++l) add_offsets(head.offsets[g], steps + 2 * l);
  }
};

struct IQ1_M : SuperFormat {
  static constexpr int kBytes = 56;
  static constexpr int kBias = kTernaryGridBias;
  static constexpr int kGroup = 16;
  static constexpr int kSub = 32;
  struct Head : SuperHead<16, 0> {
    vi high[4];  ///< the nibbles: bit 4k + 3 set makes the offset of elements 8k.. negative
  };
  static HK_INLINE void head(const std::uint8_t* const* rows, std::size_t offset, Head& head) {
    vi words[4];
    load_rows16(rows, offset + 40, words);
    const vi a = words[2], b = words[3];  // four 16-bit words: four 3-bit scales, a nibble of d on top
    head.d = half_low((shr(a, 12) & 0xF) | (shr(a, 24) & 0xF0) | (shr(b, 4) & 0xF00) | (shr(b, 16) & 0xF000)) * 0.125f;
    head.dmin = vf{};
    for (int t = 0; t < 16; ++t) {
      const vi word = shr(t < 8 ? a : b, 16 * (t / 4 % 2));
      head.scales[t] = 2 * (shr(word, 3 * (t % 4)) & 7) + 1;
    }
    load_rows16(rows, offset + 32, head.high);
  }
  static HK_INLINE void sub(const std::uint8_t* const* rows, std::size_t offset, int g, const Head& head, vi* steps) {
    grid_steps8(
        [&](int r, int l) HK_LAMBDA_INLINE {
          const std::uint8_t* block = rows[r] + offset;
          const unsigned high = load16(block + 32 + 2 * g);
          return kIQ1SGrid[block[4 * g + l] | (high >> (4 * l) & 7U) << 8];
        },
        steps);
    const vi nibbles = shr(head.high[g / 2], 16 * (g % 2));
    for (int l = 0; l < 4; ++l) add_offsets(shr(nibbles, 4 * l + 3), steps + 2 * l);
  }
};

}  // namespace
}  // namespace hk::kernels
