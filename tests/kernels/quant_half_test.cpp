// Conversions between f32 and the small float types, exhaustively where there are few values.
#include "kernels/quant/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace hk::kernels {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
float from_bits(std::uint32_t value) { return std::bit_cast<float>(value); }

/// The value of a sign, exponent, mantissa float by its definition, for finite values.
double defined_value(unsigned code, int exponent_bits, int mantissa_bits, int bias) {
  const int mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>((code >> mantissa_bits) & ((1u << exponent_bits) - 1));
  const double sign = (code >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

TEST(QuantHalf, EveryF16HasItsDefinedValueAndComesBack) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    const float value = f16_to_f32(half);
    ASSERT_EQ(std::signbit(value), (code & 0x8000) != 0) << code;
    if ((code & 0x7C00) == 0x7C00) {
      if ((code & 0x3FF) != 0) {
        ASSERT_TRUE(std::isnan(value)) << code;
        ASSERT_EQ(f32_to_f16(value), (code & 0x8000) | 0x7E00) << code;
        continue;
      }
      ASSERT_TRUE(std::isinf(value)) << code;
    } else {
      ASSERT_EQ(static_cast<double>(value), defined_value(code, 5, 10, 15)) << code;
    }
    ASSERT_EQ(f32_to_f16(value), half) << code;
  }
}

TEST(QuantHalf, F32ToF16RoundsToNearestAndTiesToEven) {
  for (unsigned code = 0; code < 0x7C00; ++code) {
    const auto low = static_cast<std::uint16_t>(code);
    const auto high = static_cast<std::uint16_t>(code + 1);
    const float above = code == 0x7BFF ? 65536.0f : f16_to_f32(high);
    const float middle = (f16_to_f32(low) + above) / 2;  // exact: 12 significant bits
    const std::uint16_t even = (code & 1) != 0 ? high : low;
    for (const unsigned sign : {0u, 0x8000u}) {
      const float s = sign != 0 ? -1.0f : 1.0f;
      ASSERT_EQ(f32_to_f16(s * middle), sign | even) << code;
      ASSERT_EQ(f32_to_f16(s * std::nextafter(middle, 0.0f)), sign | low) << code;
      ASSERT_EQ(f32_to_f16(s * std::nextafter(middle, 1e9f)), sign | high) << code;
    }
  }
}

TEST(QuantHalf, F32ToF16Extremes) {
  EXPECT_EQ(f32_to_f16(0.0f), 0x0000);
  EXPECT_EQ(f32_to_f16(-0.0f), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::min()), 0x8000);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(f32_to_f16(from_bits(0x7F800001)), 0x7E00);
  EXPECT_EQ(f32_to_f16(from_bits(0xFFFFFFFF)), 0xFE00);
}

TEST(QuantHalf, BF16IsTheUpperHalfRoundedToNearestEven) {
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    ASSERT_EQ(bits(bf16_to_f32(half)), code << 16);
    if ((code & 0x7F80) == 0x7F80) continue;  // infinity and NaN below
    ASSERT_EQ(f32_to_bf16(from_bits(code << 16)), code);
    ASSERT_EQ(f32_to_bf16(from_bits((code << 16) | 0x7FFF)), code);
    ASSERT_EQ(f32_to_bf16(from_bits((code << 16) | 0x8000)), code + (code & 1));
    ASSERT_EQ(f32_to_bf16(from_bits((code << 16) | 0x8001)), code + 1);
  }
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_EQ(f32_to_bf16(-std::numeric_limits<float>::infinity()), 0xFF80);
  EXPECT_EQ(f32_to_bf16(from_bits(0x7F800001)), 0x7FC0);  // a NaN never becomes infinity
  EXPECT_EQ(f32_to_bf16(from_bits(0xFFABCDEF)), 0xFFEB);
}

TEST(QuantHalf, EveryFp8HasItsDefinedValue) {
  for (unsigned code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const float e4m3 = fp8_e4m3_to_f32(byte);
    const float e5m2 = fp8_e5m2_to_f32(byte);
    EXPECT_EQ(std::signbit(e4m3), code >= 128);
    EXPECT_EQ(std::signbit(e5m2), code >= 128);
    if ((code & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(e4m3));
    } else {
      EXPECT_EQ(static_cast<double>(e4m3), defined_value(code, 4, 3, 7)) << code;
    }
    if ((code & 0x7F) == 0x7C) {
      EXPECT_TRUE(std::isinf(e5m2)) << code;
    } else if ((code & 0x7F) > 0x7C) {
      EXPECT_TRUE(std::isnan(e5m2)) << code;
    } else {
      EXPECT_EQ(static_cast<double>(e5m2), defined_value(code, 5, 2, 15)) << code;
    }
  }
}

TEST(QuantHalf, BlockScalesOfTheFp4Formats) {
  for (int e = 0; e < 256; ++e)
    EXPECT_EQ(static_cast<double>(e8m0_half_to_f32(static_cast<std::uint8_t>(e))), std::ldexp(1.0, e - 128)) << e;
  for (unsigned u = 0; u < 256; ++u) {
    const double expected = u == 0x7F ? 0.0 : defined_value(u & 0x7F, 4, 3, 7) / 2;
    EXPECT_EQ(static_cast<double>(ue4m3_half_to_f32(static_cast<std::uint8_t>(u))), expected) << u;
  }
  EXPECT_EQ(ue4m3_half_to_f32(0xFF), 240.0f);
  EXPECT_EQ(bits(ue4m3_half_to_f32(0x80)), 0u);
}

}  // namespace
}  // namespace hk::kernels
