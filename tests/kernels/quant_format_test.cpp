// The table of storage types: complete, unambiguous, and of the sizes the reference data has.
#include "kernels/quant/format.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "kernels/quant/blocks.h"
#include "tests/kernels/quant_fixtures.h"

namespace hk::kernels {
namespace {

/// Section 5 of the format specification, written out once more.
const std::map<int, std::string> kSpecified = {
    {0x00, "f32"},      {0x01, "f16"},        {0x02, "bf16"},       {0x03, "fp8_e4m3"},   {0x04, "fp8_e5m2"},
    {0x05, "int8"},     {0x06, "int32"},      {0x07, "int64"},      {0x08, "uint8"},      {0x09, "bool"},
    {0x0A, "int16"},    {0x0B, "uint16"},     {0x0C, "uint32"},     {0x0D, "uint64"},     {0x0E, "f64"},
    {0x10, "dq4"},      {0x11, "dq8"},        {0x12, "dq6"},        {0x13, "dq12"},       {0x14, "dqt"},
    {0x15, "q4_0"},     {0x16, "q8_0"},       {0x17, "q4_1"},       {0x18, "q5_0"},       {0x19, "q5_1"},
    {0x1A, "q8_1"},     {0x20, "sparse_f16"}, {0x21, "sparse_dq8"}, {0x22, "sparse_2_4"}, {0x23, "sparse_dq4_2_4"},
    {0x30, "null_ref"}, {0x31, "shared_ref"}, {0x32, "lora_ref"},   {0x40, "q2_k"},       {0x41, "q3_k"},
    {0x42, "q4_k"},     {0x43, "q5_k"},       {0x44, "q6_k"},       {0x45, "q8_k"},       {0x50, "iq1_s"},
    {0x51, "iq1_m"},    {0x52, "iq2_xxs"},    {0x53, "iq2_xs"},     {0x54, "iq3_xxs"},    {0x55, "iq4_nl"},
    {0x56, "iq4_xs"},   {0x57, "iq2_s"},      {0x58, "iq3_s"},      {0x60, "tq1_0"},      {0x61, "tq2_0"},
    {0x62, "mxfp4"},    {0x63, "nvfp4"},      {0xE0, "q1_0"},       {0xE1, "q2_0"},
};

TEST(QuantFormat, HoldsExactlyTheSpecifiedTypes) {
  std::map<int, std::string> found;
  for (const Format& format : formats()) found[static_cast<int>(format.type)] = format.name;
  EXPECT_EQ(found, kSpecified);
  EXPECT_EQ(formats().size(), kSpecified.size());
}

TEST(QuantFormat, EveryRowIsFoundByValueByNameAndByGgufNumber) {
  std::set<std::string_view> names;
  std::set<std::int32_t> numbers;
  for (const Format& format : formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_EQ(find_format(format.type), &format) << format.name;
    EXPECT_EQ(find_format(format.name), &format) << format.name;
    EXPECT_EQ(storage_type_name(format.type), format.name);
    if (format.gguf_type < 0) continue;
    EXPECT_TRUE(numbers.insert(format.gguf_type).second) << format.name;
    EXPECT_EQ(find_gguf_format(static_cast<std::uint32_t>(format.gguf_type)), &format) << format.name;
  }
}

TEST(QuantFormat, UnknownValuesHaveNoRowButAName) {
  for (int value = 0; value < 256; ++value) {
    const auto type = static_cast<StorageType>(value);
    if (kSpecified.count(value) != 0) continue;
    EXPECT_EQ(find_format(type), nullptr) << value;
    char expected[32];
    std::snprintf(expected, sizeof(expected), "unknown type 0x%02x", static_cast<unsigned>(value));
    EXPECT_EQ(storage_type_name(type), expected);
  }
  EXPECT_EQ(find_format(std::string_view()), nullptr);
  EXPECT_EQ(find_format(std::string_view("q4_")), nullptr);
  EXPECT_EQ(find_format(std::string_view("Q4_K")), nullptr);
}

TEST(QuantFormat, RetiredForeignAndUnknownGgufNumbersAreRefused) {
  for (const std::uint32_t number : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 97u, 255u, 256u, 0xFFFFFFFFu})
    EXPECT_EQ(find_gguf_format(number), nullptr) << number;
  std::size_t known = 0;
  for (std::uint32_t number = 0; number < 1000; ++number) known += find_gguf_format(number) != nullptr ? 1 : 0;
  EXPECT_EQ(known, 28u + 5u + 2u);  // the formats of the reference data, i8 i16 i32 i64 f64, and q1_0 q2_0 of models
}

TEST(QuantFormat, DenseGgufNumbers) {
  const std::map<std::uint32_t, std::string> dense = {
      {24, "int8"}, {25, "int16"}, {26, "int32"}, {27, "int64"}, {28, "f64"}};
  for (const auto& [number, name] : dense) {
    ASSERT_NE(find_gguf_format(number), nullptr);
    EXPECT_EQ(find_gguf_format(number)->name, name);
  }
}

TEST(QuantFormat, RowsAreConsistent) {
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    switch (format.storage_class) {
      case StorageClass::kDense:
        EXPECT_EQ(format.block_elements, 1u);
        EXPECT_GE(format.block_bytes, 1u);
        EXPECT_NE(format.decode, nullptr);
        break;
      case StorageClass::kBlock:
        EXPECT_GE(format.block_elements, 32u);
        EXPECT_GT(format.block_bytes, format.block_elements / 8);
        EXPECT_GE(format.gguf_type, 0);
        EXPECT_NE(format.decode, nullptr);
        break;
      case StorageClass::kDual:
      case StorageClass::kSparse:
      case StorageClass::kVirtual:
      case StorageClass::kOpaque:
        EXPECT_EQ(format.block_elements, 0u);
        EXPECT_EQ(format.block_bytes, 0u);
        EXPECT_EQ(format.gguf_type, -1);
        EXPECT_EQ(format.activation, ActivationFormat::kNone);
        EXPECT_EQ(format.decode, nullptr);
        EXPECT_EQ(format.encode, nullptr);
        break;
    }
  }
}

TEST(QuantFormat, ActivationGroupsDivideTheBlocksThatUseThem) {
  const std::set<std::string_view> floats = {"f32", "f16", "bf16"};
  const std::set<std::string_view> storage_only = {"q8_1", "q8_k"};
  for (const Format& format : formats()) {
    SCOPED_TRACE(format.name);
    if (floats.count(format.name) != 0) {
      EXPECT_EQ(format.activation, ActivationFormat::kF32);
    } else if (format.storage_class != StorageClass::kBlock || storage_only.count(format.name) != 0) {
      EXPECT_EQ(format.activation, ActivationFormat::kNone);
    } else if (format.block_elements == 256) {
      EXPECT_EQ(format.activation, ActivationFormat::kQ8x256);
    } else {
      EXPECT_EQ(format.activation, ActivationFormat::kQ8x32);
    }
  }
}

TEST(QuantFormat, SizesAndNumbersAreThoseOfTheReference) {
  HK_FIXTURE(folder, "fixtures/quants");
  const auto index = test::quant_index(folder);
  EXPECT_EQ(index.size(), 28u);
  for (const auto& row : index) {
    SCOPED_TRACE(row.name);
    const Format* format = find_format(row.name);
    ASSERT_NE(format, nullptr);
    EXPECT_EQ(format->block_elements, row.elements);
    EXPECT_EQ(format->block_bytes, row.bytes);
    EXPECT_EQ(format->gguf_type, row.gguf_type);
  }
}

TEST(QuantBlocks, ScalesOfQ4KUnpackFromEverySlot) {
  // Scale 8g + 1 and min 63 - 8g in every group, packed by hand from the description of the twelve bytes.
  std::uint8_t bytes[12] = {};
  int scales[8];
  int mins[8];
  for (int g = 0; g < 8; ++g) {
    scales[g] = 8 * g + 1;
    mins[g] = 63 - 8 * g;
  }
  for (int g = 0; g < 4; ++g) {
    bytes[g] = static_cast<std::uint8_t>(scales[g] + 64 * (scales[g + 4] / 16));
    bytes[4 + g] = static_cast<std::uint8_t>(mins[g] + 64 * (mins[g + 4] / 16));
    bytes[8 + g] = static_cast<std::uint8_t>(scales[g + 4] % 16 + 16 * (mins[g + 4] % 16));
  }
  for (unsigned g = 0; g < 8; ++g) {
    EXPECT_EQ(unpack_scale_min(bytes, g).scale, scales[g]);
    EXPECT_EQ(unpack_scale_min(bytes, g).min, mins[g]);
  }
}

TEST(QuantBlocks, ScaleOfIQ1MIsSpreadOverFourWords) {
  BlockIQ1_M block = {};
  block.scales[0] = 0x1FFF;
  block.scales[1] = 0x2000;
  block.scales[2] = 0x3ABC;
  block.scales[3] = 0x4001;
  EXPECT_EQ(iq1_m_scale(block), 0x4321);
}

}  // namespace
}  // namespace hk::kernels
