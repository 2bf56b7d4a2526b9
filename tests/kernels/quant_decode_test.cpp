// Exact decoders: every block of the reference data bit for bit, dense types at their limits, any alignment.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/quant/format.h"
#include "tests/kernels/quant_fixtures.h"

namespace hk::kernels {
namespace {

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

template <typename Stored>
std::vector<float> decode_values(StorageType type, const std::vector<Stored>& stored) {
  std::vector<float> out(stored.size());
  find_format(type)->decode(stored.data(), out.data(), stored.size());
  return out;
}

TEST(QuantDecode, EveryReferenceBlockBitForBit) {
  HK_FIXTURE(folder, "fixtures/quants");
  for (const auto& row : test::quant_index(folder)) {
    SCOPED_TRACE(row.name);
    const Format* format = find_format(row.name);
    ASSERT_NE(format, nullptr);
    const auto blocks = test::quant_file(folder, row.name + ".blocks.bin");
    const auto expected = test::as_floats(test::quant_file(folder, row.name + ".f32.bin"));
    ASSERT_EQ(blocks.size(), row.blocks * row.bytes);
    ASSERT_EQ(expected.size(), row.blocks * row.elements);
    std::vector<float> out(expected.size());
    format->decode(blocks.data(), out.data(), out.size());
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(bits(out[i]), bits(expected[i])) << "block " << i / row.elements << " element " << i % row.elements
                                                 << ": " << out[i] << ", not " << expected[i];
  }
}

TEST(QuantDecode, BlocksAreIndependentAndNeedNoAlignment) {
  constexpr std::size_t kBlocks = 37;
  std::mt19937 random(7);
  for (const Format& format : formats()) {
    if (format.decode == nullptr) continue;
    SCOPED_TRACE(format.name);
    std::vector<std::uint8_t> bytes(kBlocks * format.block_bytes);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::vector<float> whole(kBlocks * format.block_elements);
    format.decode(bytes.data(), whole.data(), whole.size());

    std::vector<float> single(format.block_elements + 1, 42.0f);
    std::vector<std::uint8_t> shifted(format.block_bytes + 1);
    for (std::size_t b = 0; b < kBlocks; ++b) {
      std::memcpy(shifted.data() + 1, bytes.data() + b * format.block_bytes, format.block_bytes);
      format.decode(shifted.data() + 1, single.data(), format.block_elements);
      ASSERT_EQ(
          std::memcmp(single.data(), whole.data() + b * format.block_elements, format.block_elements * sizeof(float)),
          0)
          << "block " << b;
    }
    EXPECT_EQ(single.back(), 42.0f) << "wrote past the block";
    format.decode(nullptr, nullptr, 0);
  }
}

TEST(QuantDecode, IntegersRoundToTheNearestFloat) {
  EXPECT_EQ(decode_values<std::int8_t>(StorageType::kInt8, {-128, -1, 0, 127}),
            (std::vector<float>{-128.0f, -1.0f, 0.0f, 127.0f}));
  EXPECT_EQ(decode_values<std::uint8_t>(StorageType::kUInt8, {0, 128, 255}),
            (std::vector<float>{0.0f, 128.0f, 255.0f}));
  EXPECT_EQ(decode_values<std::int16_t>(StorageType::kInt16, {-32768, 32767}),
            (std::vector<float>{-32768.0f, 32767.0f}));
  EXPECT_EQ(decode_values<std::uint16_t>(StorageType::kUInt16, {65535}), (std::vector<float>{65535.0f}));
  EXPECT_EQ(decode_values<std::int32_t>(StorageType::kInt32, {16777217, 16777219, std::numeric_limits<int>::min()}),
            (std::vector<float>{16777216.0f, 16777220.0f, -0x1p31f}));
  EXPECT_EQ(decode_values<std::uint32_t>(StorageType::kUInt32, {0xFFFFFFFFu, 0x80000080u}),
            (std::vector<float>{0x1p32f, 0x1p31f}));
  EXPECT_EQ(decode_values<std::int64_t>(StorageType::kInt64,
                                        {std::numeric_limits<std::int64_t>::min(), -3, (std::int64_t{1} << 53) + 1}),
            (std::vector<float>{-0x1p63f, -3.0f, 0x1p53f}));
  EXPECT_EQ(decode_values<std::uint64_t>(StorageType::kUInt64, {std::numeric_limits<std::uint64_t>::max(), 5}),
            (std::vector<float>{0x1p64f, 5.0f}));
}

TEST(QuantDecode, BoolsAreZeroOrOne) {
  EXPECT_EQ(decode_values<std::uint8_t>(StorageType::kBool, {0, 1, 2, 255}),
            (std::vector<float>{0.0f, 1.0f, 1.0f, 1.0f}));
}

TEST(QuantDecode, DoublesRoundOverflowAndKeepTheSignOfZero) {
  const auto out = decode_values<double>(StorageType::kF64, {1.0 + 0x1p-24, 1.0 + 0x1p-24 + 0x1p-40, -0.0, 1e300,
                                                             0x1p-149, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], 1.0f + 0x1p-23f);
  EXPECT_EQ(bits(out[2]), 0x80000000u);
  EXPECT_TRUE(std::isinf(out[3]));
  EXPECT_EQ(bits(out[4]), 1u);
  EXPECT_TRUE(std::isnan(out[5]));
}

TEST(QuantDecode, SmallFloats) {
  const auto e4m3 =
      decode_values<std::uint8_t>(StorageType::kFP8E4M3, {0x00, 0x80, 0x01, 0x38, 0x7E, 0xFE, 0x7F, 0xFF});
  EXPECT_EQ(bits(e4m3[1]), 0x80000000u);
  EXPECT_EQ(e4m3[2], 0x1p-9f);
  EXPECT_EQ(e4m3[3], 1.0f);
  EXPECT_EQ(e4m3[4], 448.0f);
  EXPECT_EQ(e4m3[5], -448.0f);
  EXPECT_TRUE(std::isnan(e4m3[6]) && std::isnan(e4m3[7]));
  const auto e5m2 = decode_values<std::uint8_t>(StorageType::kFP8E5M2, {0x01, 0x3C, 0x7B, 0x7C, 0xFC, 0x7D});
  EXPECT_EQ(e5m2[0], 0x1p-16f);
  EXPECT_EQ(e5m2[1], 1.0f);
  EXPECT_EQ(e5m2[2], 57344.0f);
  EXPECT_TRUE(std::isinf(e5m2[3]) && std::isinf(e5m2[4]) && e5m2[4] < 0);
  EXPECT_TRUE(std::isnan(e5m2[5]));
}

}  // namespace
}  // namespace hk::kernels
