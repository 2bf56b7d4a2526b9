// Unpackers of the Block32 family: 32 elements with a float scale (and a float minimum) a row, W rows at a time.
//
// Part of the level sources (see vec.h). The packed bytes of W rows are loaded 16 at a time, transposed so that lane r
// holds a dword of row r, and only then taken apart: every shift and mask works on W rows at once and serves any number
// of activations. "Step" u holds elements 4u..4u+3 of each row as four bytes, with kBias added (so that most are
// unsigned and small; kWide marks those that need the whole int8 range, see vec.h). Layouts: QUANTS.md section 4.
#pragma once

#include "kernels/isa/vec.h"
#include "kernels/quant/codebooks.h"

namespace hk::kernels {
namespace {

inline constexpr std::int32_t kLowNibbles = 0x0F0F0F0F;

/// Sixteen bytes a row with element j in the low nibble of byte j and element j + 16 in the high one.
HK_INLINE void unpack_nibbles(const std::uint8_t* const* rows, std::size_t offset, vi* steps) {
  vi packed[4];
  load_rows16(rows, offset, packed);
  for (int j = 0; j < 4; ++j) {
    steps[j] = packed[j] & kLowNibbles;
    steps[4 + j] = shr(packed[j], 4) & kLowNibbles;
  }
}

/// The fifth bit of q5_0 and q5_1: bit 4u + k of `bits` becomes bit 4 of byte k of step u.
HK_INLINE void add_fifth_bits(vi bits, vi* steps) {
  for (int u = 0; u < 8; ++u) steps[u] |= ((shr(bits, 4 * u) & 0xF) * 0x02040810) & 0x10101010;
}

struct BlockFormat {
  static constexpr bool kWide = false;
  static constexpr bool kHasMin = false;
  static constexpr int kScales = 1;  ///< scales in 32 elements
  static constexpr int kParts = 1;   ///< runs of 32 elements in a stored block
};

struct Q4_0 : BlockFormat {
  static constexpr int kBytes = 18;
  static constexpr int kBias = 8;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int, vi* steps, vf* scale, vf*) {
    unpack_nibbles(rows, offset + 2, steps);
    *scale = half_low(load_rows4(rows, offset));
  }
};

struct Q4_1 : BlockFormat {
  static constexpr int kBytes = 20;
  static constexpr int kBias = 0;
  static constexpr bool kHasMin = true;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int, vi* steps, vf* scale,
                               vf* min) {
    unpack_nibbles(rows, offset + 4, steps);
    const vi head = load_rows4(rows, offset);
    *scale = half_low(head);
    *min = half_high(head);
  }
};

struct Q5_0 : BlockFormat {
  static constexpr int kBytes = 22;
  static constexpr int kBias = 16;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int, vi* steps, vf* scale, vf*) {
    unpack_nibbles(rows, offset + 6, steps);
    vi head[4];
    load_rows16(rows, offset, head);
    add_fifth_bits(shr(head[0], 16) | (head[1] << 16), steps);
    *scale = half_low(head[0]);
  }
};

struct Q5_1 : BlockFormat {
  static constexpr int kBytes = 24;
  static constexpr int kBias = 0;
  static constexpr bool kHasMin = true;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int, vi* steps, vf* scale,
                               vf* min) {
    unpack_nibbles(rows, offset + 8, steps);
    vi head[4];
    load_rows16(rows, offset, head);
    add_fifth_bits(head[1], steps);
    *scale = half_low(head[0]);
    *min = half_high(head[0]);
  }
};

struct Q8_0 : BlockFormat {
  static constexpr int kBytes = 34;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int, vi* steps, vf* scale, vf*) {
    load_rows16(rows, offset + 2, steps);
    load_rows16(rows, offset + 18, steps + 4);
    for (int u = 0; u < 8; ++u) steps[u] = wide(steps[u]);
    *scale = half_low(load_rows4(rows, offset));
  }
};

struct IQ4_NL : BlockFormat {
  static constexpr int kBytes = 18;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int, vi* steps, vf* scale, vf*) {
    unpack_nibbles(rows, offset + 2, steps);
    for (int u = 0; u < 8; ++u) steps[u] = wide(lookup16(kIQ4NLValues, steps[u]));
    *scale = half_low(load_rows4(rows, offset));
  }
};

/// Doubled E2M1 values plus 12, so that they are unsigned.
inline constexpr int kE2M1Bias = 12;
alignas(16) constexpr std::int8_t kE2M1Biased[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct MXFP4 : BlockFormat {
  static constexpr int kBytes = 17;
  static constexpr int kBias = kE2M1Bias;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int, vi* steps, vf* scale, vf*) {
    unpack_nibbles(rows, offset + 1, steps);
    for (int u = 0; u < 8; ++u) steps[u] = lookup16(kE2M1Biased, steps[u]);
    const vi e = load_rows4(rows, offset) & 0xFF;
    // 2^(e - 128): subnormal for e = 0 and 1
    const vi small = e < 2;
    *scale = as_f((small & (0x00200000 << e)) | (~small & ((e - 1) << 23)));
  }
};

struct NVFP4 : BlockFormat {
  static constexpr int kBytes = 36;
  static constexpr int kParts = 2;
  static constexpr int kScales = 2;
  static constexpr int kBias = kE2M1Bias;
  /// Unsigned E4M3, halved (QUANTS.md 4.27).
  static HK_INLINE vf scale_of(vi u) {
    const vi exponent = shr(u, 3) & 15, mantissa = u & 7;
    const vf normal = as_f(((exponent + 119) << 23) | (mantissa << 20));
    const vf subnormal = to_float(mantissa) * 0x1p-10f;
    return select(u == 0x7F, vf{}, select(exponent == 0, subnormal, normal));
  }
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, int part, vi* steps, vf* scale,
                               vf*) {
    vi packed[4];
    load_rows16(rows, offset + 4 + 16 * part, packed);
    for (int half = 0; half < 2; ++half) {
      for (int j = 0; j < 2; ++j) {
        steps[4 * half + j] = lookup16(kE2M1Biased, packed[2 * half + j] & kLowNibbles);
        steps[4 * half + 2 + j] = lookup16(kE2M1Biased, shr(packed[2 * half + j], 4) & kLowNibbles);
      }
    }
    const vi scales = shr(load_rows4(rows, offset), 16 * part);
    scale[0] = scale_of(scales & 0xFF);
    scale[1] = scale_of(shr(scales, 8) & 0xFF);
  }
};

}  // namespace
}  // namespace hk::kernels
