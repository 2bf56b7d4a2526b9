// How each weight format becomes small integers with scales, W rows at a time, with rows as lanes.
//
// Part of the level sources (see vec.h). The packed bytes of W rows are loaded 16 at a time, transposed so that lane r
// holds a dword of row r, and only then taken apart: every shift and mask works on W rows at once and serves any number
// of activations. An unpacker yields "steps": step u holds elements 4u..4u+3 of each row as four bytes.
//
// Families:
//   Block32: 32 elements with a float scale (and a float minimum) a row
//   Super:   256 elements with integer group scales under one float scale (and integer group minima under another)
//   Float:   weights as floats, four or eight columns a unit
#pragma once

#include "kernels/isa/vec.h"
#include "kernels/quant/format.h"

namespace hk::kernels {
namespace {

inline constexpr std::int32_t kLowNibbles = 0x0F0F0F0F;

// --- Block32 ---------------------------------------------------------------------------------------------------------

/// QUANTS.md 4.2: f16 d, 16 bytes; byte j holds elements j (low nibble) and j + 16.
struct Q4_0 {
  static constexpr int kBytes = 18;
  static constexpr int kBias = 8;
  static constexpr bool kWide = false;
  static constexpr bool kHasMin = false;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, vi* steps, vf* scale, vf*) {
    vi packed[4];
    load_rows16(rows, offset + 2, packed);
    for (int j = 0; j < 4; ++j) {
      steps[j] = packed[j] & kLowNibbles;
      steps[4 + j] = shr(packed[j], 4) & kLowNibbles;
    }
    *scale = half_low(load_rows2(rows, offset));
  }
};

/// QUANTS.md 4.6: f16 d, 32 signed bytes.
struct Q8_0 {
  static constexpr int kBytes = 34;
  static constexpr int kBias = kWideBias;
  static constexpr bool kWide = true;
  static constexpr bool kHasMin = false;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, vi* steps, vf* scale, vf*) {
    load_rows16(rows, offset + 2, steps);
    load_rows16(rows, offset + 18, steps + 4);
    for (int j = 0; j < 8; ++j) steps[j] = wide(steps[j]);
    *scale = half_low(load_rows2(rows, offset));
  }
};

// --- Super -----------------------------------------------------------------------------------------------------------

/// The 6-bit scales and minima of q4_k and q5_k (QUANTS.md 4.10) from the three scale dwords of each row: group g of
/// `scales` and `mins` as bytes g % 4 of dword g / 4.
HK_INLINE void unpack_scales_k4(const vi* s, vi* scales, vi* mins) {
  scales[0] = s[0] & 0x3F3F3F3F;
  mins[0] = s[1] & 0x3F3F3F3F;
  scales[1] = (s[2] & kLowNibbles) | (shr(s[0], 2) & 0x30303030);
  mins[1] = (shr(s[2], 4) & kLowNibbles) | (shr(s[1], 2) & 0x30303030);
}

/// QUANTS.md 4.10: d, dmin, 12 scale bytes, then per 64 elements 32 bytes with the even group in the low nibbles.
struct Q4_K {
  static constexpr int kBytes = 144;
  static constexpr int kBias = 0;
  static constexpr bool kWide = false;
  static constexpr int kGroup = 32;
  static constexpr bool kHasMin = true;
  /// scales: 256 / kGroup lanes of int; mins: pairs of int16 for groups 2j, 2j + 1; d, dmin: dmin negated.
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, vi* steps, int stride, vi* scales,
                               vi* mins, vf* d, vf* dmin) {
    vi head[4], bytes[2], min_bytes[2];
    load_rows16(rows, offset, head);
    *d = half_low(head[0]);
    *dmin = -half_high(head[0]);
    unpack_scales_k4(head + 1, bytes, min_bytes);
    for (int g = 0; g < 8; ++g) scales[g] = shr(bytes[g / 4], 8 * (g % 4)) & 0xFF;
    for (int j = 0; j < 4; ++j) {
      const vi two = shr(min_bytes[j / 2], 16 * (j % 2)) & 0xFFFF;
      mins[j] = (two & 0xFF) | ((two << 8) & 0x00FF0000);
    }
    for (int c = 0; c < 4; ++c) {
      for (int half = 0; half < 2; ++half) {
        vi packed[4];
        load_rows16(rows, offset + 16 + 32 * c + 16 * half, packed);
        for (int j = 0; j < 4; ++j) {
          steps[(16 * c + 4 * half + j) * stride] = packed[j] & kLowNibbles;
          steps[(16 * c + 8 + 4 * half + j) * stride] = shr(packed[j], 4) & kLowNibbles;
        }
      }
    }
  }
};

// --- Float -----------------------------------------------------------------------------------------------------------

/// Sixteen bytes of every row hold kColumns weights.
struct F32 {
  static constexpr int kBytes = 4;
  static constexpr int kColumns = 4;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, vf* columns, int stride) {
    vi packed[4];
    load_rows16(rows, offset, packed);
    for (int j = 0; j < 4; ++j) columns[j * stride] = as_f(packed[j]);
  }
};

struct F16 {
  static constexpr int kBytes = 2;
  static constexpr int kColumns = 8;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, vf* columns, int stride) {
    vi packed[4];
    load_rows16(rows, offset, packed);
    for (int j = 0; j < 4; ++j) {
      columns[2 * j * stride] = half_low(packed[j]);
      columns[(2 * j + 1) * stride] = half_high(packed[j]);
    }
  }
};

struct BF16 {
  static constexpr int kBytes = 2;
  static constexpr int kColumns = 8;
  static HK_INLINE void unpack(const std::uint8_t* const* rows, std::size_t offset, vf* columns, int stride) {
    vi packed[4];
    load_rows16(rows, offset, packed);
    for (int j = 0; j < 4; ++j) {
      columns[2 * j * stride] = as_f(packed[j] << 16);
      columns[(2 * j + 1) * stride] = as_f(packed[j] & static_cast<std::int32_t>(0xFFFF0000));
    }
  }
};

}  // namespace
}  // namespace hk::kernels
