// Exact conversions between f32 and the small float types, in plain integer arithmetic.
//
// Layer: kernels. No F16C, no tables, the same bits on every CPU. Everything is `static inline` and calls nothing:
// level translation units compiled for newer instruction sets include this header and may define no weak symbol.
#pragma once

#include <cstdint>

namespace hk::kernels {

/// IEEE binary16 to f32, exact; subnormals and infinities are kept, a NaN keeps its payload.
static inline float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 31u;
  const std::uint32_t mantissa = half & 0x3FFu;
  std::uint32_t bits = 0;
  if (exponent == 0) {
    // m * 2^-24 is a normal f32 (or zero), so the product is exact even with denormals-are-zero.
    bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(mantissa) * 0x1p-24f);
  } else if (exponent == 31) {
    bits = 0x7F800000u | (mantissa << 13);
  } else {
    bits = ((exponent + 112u) << 23) | (mantissa << 13);
  }
  return __builtin_bit_cast(float, bits | sign);
}

/// f32 to IEEE binary16: nearest, ties to even; 65520 and more is infinity, NaN is 0x7E00 with the sign kept.
static inline std::uint16_t f32_to_f16(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  std::uint32_t result = 0;
  if (magnitude > 0x7F800000u) {
    result = 0x7E00u;
  } else if (magnitude >= 0x477FF000u) {  // 65520: halfway between the largest half and 2^16
    result = 0x7C00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14: normal results; a carry out of the mantissa moves into the exponent
    const std::uint32_t shifted = magnitude - (112u << 23);
    result = (shifted + 0xFFFu + ((shifted >> 13) & 1u)) >> 13;
  } else if (magnitude >= 0x33000000u) {  // 2^-25: subnormal results, units of 2^-24
    const std::uint32_t shift = 126u - (magnitude >> 23);
    const std::uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    const std::uint32_t rest = mantissa & ((1u << shift) - 1u);
    const std::uint32_t half = 1u << (shift - 1u);
    result = mantissa >> shift;
    if (rest > half || (rest == half && (result & 1u) != 0)) ++result;
  }
  return static_cast<std::uint16_t>(sign | result);
}

/// bf16 is the upper half of an f32.
static inline float bf16_to_f32(std::uint16_t value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value) << 16);
}

/// f32 to bf16: nearest, ties to even, subnormals kept; a NaN keeps its upper half and becomes quiet.
static inline std::uint16_t f32_to_bf16(float value) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// FP8 E4M3 (bias 7, no infinities, 0x7F and 0xFF are NaN) to f32, exact.
static inline float fp8_e4m3_to_f32(std::uint8_t value) {
  const std::uint32_t sign = (value & 0x80u) << 24;
  const std::uint32_t magnitude = value & 0x7Fu;
  std::uint32_t bits = 0;
  if (magnitude == 0x7Fu) {
    bits = 0x7FC00000u;
  } else if (magnitude < 8u) {
    bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(magnitude) * 0x1p-9f);
  } else {
    bits = (magnitude << 20) + (120u << 23);
  }
  return __builtin_bit_cast(float, bits | sign);
}

/// FP8 E5M2 is the upper half of a binary16.
static inline float fp8_e5m2_to_f32(std::uint8_t value) {
  return f16_to_f32(static_cast<std::uint16_t>(static_cast<std::uint32_t>(value) << 8));
}

/// Half of the E8M0 scale of an mxfp4 block, 2^(e - 128); the element table is doubled to make up for it.
static inline float e8m0_half_to_f32(std::uint8_t e) {
  const std::uint32_t bits = e < 2 ? 0x00200000u << e : (static_cast<std::uint32_t>(e) - 1u) << 23;
  return __builtin_bit_cast(float, bits);
}

/// Half of the unsigned E4M3 scale of an nvfp4 sub-block. 0x7F is NaN in E4M3 and decodes to 0; bit 7 is ignored
/// otherwise, so that 0xFF is 240.
static inline float ue4m3_half_to_f32(std::uint8_t u) {
  if (u == 0x7Fu) return 0.0f;
  const std::uint32_t magnitude = u & 0x7Fu;
  if (magnitude < 8u) return static_cast<float>(magnitude) * 0x1p-10f;
  return __builtin_bit_cast(float, (magnitude << 20) + (119u << 23));
}

}  // namespace hk::kernels
