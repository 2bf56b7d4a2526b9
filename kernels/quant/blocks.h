// Byte layout of every block format, one packed struct each, fields named as in the format description.
//
// Layer: kernels. Blocks lie back to back at any address: the structs have alignment 1, so fields may be read by name
// but no pointer or reference to a wider field may be taken. f16 fields are raw u16 bits (see half.h).
#pragma once

#include <cstdint>

namespace hk::kernels {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "blocks are read in place and little-endian");

// 32 elements. Nibbles: byte j holds element j (low) and element j + 16 (high).

struct [[gnu::packed]] BlockQ4_0 {
  static constexpr unsigned kElements = 32;
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct [[gnu::packed]] BlockQ1_0 {
  static constexpr unsigned kElements = 128;
  std::uint16_t d;
  std::uint8_t qs[16];  ///< bit i % 8 of byte i / 8: element i is +d for 1, -d for 0
};
struct [[gnu::packed]] BlockQ2_0 {
  static constexpr unsigned kElements = 64;
  std::uint16_t d;
  std::uint8_t qs[16];  ///< element i in bits 2 (i % 4) of byte i / 4: (code - 1) * d
};
struct [[gnu::packed]] BlockQ4_1 {
  static constexpr unsigned kElements = 32;
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[16];
};
struct [[gnu::packed]] BlockQ5_0 {
  static constexpr unsigned kElements = 32;
  std::uint16_t d;
  std::uint32_t qh;  ///< bit i is the fifth bit of element i
  std::uint8_t qs[16];
};
struct [[gnu::packed]] BlockQ5_1 {
  static constexpr unsigned kElements = 32;
  std::uint16_t d;
  std::uint16_t m;
  std::uint32_t qh;
  std::uint8_t qs[16];
};
struct [[gnu::packed]] BlockQ8_0 {
  static constexpr unsigned kElements = 32;
  std::uint16_t d;
  std::int8_t qs[32];
};
struct [[gnu::packed]] BlockQ8_1 {
  static constexpr unsigned kElements = 32;
  std::uint16_t d;
  std::uint16_t s;  ///< d * sum(qs); not needed to decode
  std::int8_t qs[32];
};
struct [[gnu::packed]] BlockIQ4_NL {
  static constexpr unsigned kElements = 32;
  std::uint16_t d;
  std::uint8_t qs[16];
};
struct [[gnu::packed]] BlockMXFP4 {
  static constexpr unsigned kElements = 32;
  std::uint8_t e;
  std::uint8_t qs[16];
};
/// Four sub-blocks of 16; byte 8s + j holds elements 16s + j (low) and 16s + 8 + j (high).
struct [[gnu::packed]] BlockNVFP4 {
  static constexpr unsigned kElements = 64;
  std::uint8_t d[4];
  std::uint8_t qs[32];
};

// 256 elements.

struct [[gnu::packed]] BlockQ2_K {
  static constexpr unsigned kElements = 256;
  std::uint8_t scales[16];  ///< low nibble scale, high nibble min
  std::uint8_t qs[64];
  std::uint16_t d;
  std::uint16_t dmin;
};
struct [[gnu::packed]] BlockQ3_K {
  static constexpr unsigned kElements = 256;
  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  std::uint16_t d;
};
struct [[gnu::packed]] BlockQ4_K {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};
struct [[gnu::packed]] BlockQ5_K {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};
struct [[gnu::packed]] BlockQ6_K {
  static constexpr unsigned kElements = 256;
  std::uint8_t ql[128];
  std::uint8_t qh[64];
  std::int8_t scales[16];
  std::uint16_t d;
};
struct [[gnu::packed]] BlockQ8_K {
  static constexpr unsigned kElements = 256;
  float d;
  std::int8_t qs[256];
  std::int16_t bsums[16];  ///< sums of 16 codes; not needed to decode
};
struct [[gnu::packed]] BlockIQ4_XS {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint16_t scales_h;
  std::uint8_t scales_l[4];
  std::uint8_t qs[128];
};
/// One record of iq2_xxs, 32 elements.
struct [[gnu::packed]] GroupIQ2_XXS {
  std::uint8_t index[4];  ///< grid point of each 8 elements
  std::uint32_t a;        ///< four 7-bit sign indices, then the 4-bit scale
};
struct [[gnu::packed]] BlockIQ2_XXS {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  GroupIQ2_XXS groups[8];
};
struct [[gnu::packed]] BlockIQ2_XS {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint16_t qs[32];  ///< 9-bit grid index, 7-bit sign index
  std::uint8_t scales[8];
};
struct [[gnu::packed]] BlockIQ2_S {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint8_t qs[32];
  std::uint8_t signs[32];
  std::uint8_t qh[8];
  std::uint8_t scales[8];
};
struct [[gnu::packed]] BlockIQ3_XXS {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint8_t qs[64];
  std::uint32_t a[8];  ///< four 7-bit sign indices, then the 4-bit scale
};
struct [[gnu::packed]] BlockIQ3_S {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint8_t qs[64];
  std::uint8_t qh[8];
  std::uint8_t signs[32];
  std::uint8_t scales[4];
};
struct [[gnu::packed]] BlockIQ1_S {
  static constexpr unsigned kElements = 256;
  std::uint16_t d;
  std::uint8_t qs[32];
  std::uint16_t qh[8];
};
struct [[gnu::packed]] BlockIQ1_M {
  static constexpr unsigned kElements = 256;
  std::uint8_t qs[32];
  std::uint8_t qh[16];
  std::uint16_t scales[4];  ///< twelve bits of group scales; the four top nibbles make the f16 scale, see iq1_m_scale
};
struct [[gnu::packed]] BlockTQ1_0 {
  static constexpr unsigned kElements = 256;
  std::uint8_t qs[48];
  std::uint8_t qh[4];
  std::uint16_t d;
};
struct [[gnu::packed]] BlockTQ2_0 {
  static constexpr unsigned kElements = 256;
  std::uint8_t qs[64];
  std::uint16_t d;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ8_1) == 36 && sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockNVFP4) == 36);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210 && sizeof(BlockQ8_K) == 292);
static_assert(sizeof(BlockIQ4_XS) == 136 && sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74);
static_assert(sizeof(BlockIQ2_S) == 82 && sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110);
static_assert(sizeof(BlockIQ1_S) == 50 && sizeof(BlockIQ1_M) == 56);
static_assert(sizeof(BlockTQ1_0) == 54 && sizeof(BlockTQ2_0) == 66);
static_assert(alignof(BlockQ4_0) == 1 && alignof(BlockQ8_K) == 1 && alignof(BlockIQ2_XXS) == 1);

/// The f16 bits of an iq1_m block's scale, which has no field of its own.
static inline std::uint16_t iq1_m_scale(const BlockIQ1_M& block) {
  return static_cast<std::uint16_t>((block.scales[0] >> 12) | ((block.scales[1] >> 12) << 4) |
                                    ((block.scales[2] >> 12) << 8) | ((block.scales[3] >> 12) << 12));
}

/// Six-bit scale and min of group `g` (0..7) in the twelve bytes of q4_k and q5_k.
struct ScaleMin {
  std::uint8_t scale;
  std::uint8_t min;
};
static inline ScaleMin unpack_scale_min(const std::uint8_t* scales, unsigned g) {
  if (g < 4) return {static_cast<std::uint8_t>(scales[g] & 63), static_cast<std::uint8_t>(scales[g + 4] & 63)};
  return {static_cast<std::uint8_t>((scales[g + 4] & 15) | ((scales[g - 4] >> 6) << 4)),
          static_cast<std::uint8_t>((scales[g + 4] >> 4) | ((scales[g] >> 6) << 4))};
}

/// Six-bit scale of group `g` (0..15) in the twelve bytes of q3_k, bias of 32 taken off: -32..31.
static inline int unpack_q3_k_scale(const std::uint8_t* scales, unsigned g) {
  const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
  const int high = (scales[8 + g % 4] >> (2 * (g / 4))) & 3;
  return (low | (high << 4)) - 32;
}

}  // namespace hk::kernels
