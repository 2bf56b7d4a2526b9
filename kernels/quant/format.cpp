// The rows of the table of storage types, and the ways to find one.
//
// Layer: kernels. Layout facts and function pointers only; what a row means is said in format.h.
#include "kernels/quant/format.h"

#include <array>
#include <cstddef>

#include "kernels/quant/decode.h"
#include "kernels/quant/encode.h"

namespace hk::kernels {
namespace {

// type, name, class, block elements, block bytes, GGUF number, activation, decode, encode
// clang-format off
constexpr Format kFormats[] = {
    {StorageType::kF32, "f32", StorageClass::kDense, 1, 4, 0, ActivationFormat::kF32, decode_f32, encode_f32},
    {StorageType::kF16, "f16", StorageClass::kDense, 1, 2, 1, ActivationFormat::kF32, decode_f16, encode_f16},
    {StorageType::kBF16, "bf16", StorageClass::kDense, 1, 2, 30, ActivationFormat::kF32, decode_bf16, encode_bf16},
    {StorageType::kFP8E4M3, "fp8_e4m3", StorageClass::kDense, 1, 1, -1, ActivationFormat::kNone, decode_fp8_e4m3, nullptr},
    {StorageType::kFP8E5M2, "fp8_e5m2", StorageClass::kDense, 1, 1, -1, ActivationFormat::kNone, decode_fp8_e5m2, nullptr},
    {StorageType::kInt8, "int8", StorageClass::kDense, 1, 1, 24, ActivationFormat::kNone, decode_int8, nullptr},
    {StorageType::kInt32, "int32", StorageClass::kDense, 1, 4, 26, ActivationFormat::kNone, decode_int32, nullptr},
    {StorageType::kInt64, "int64", StorageClass::kDense, 1, 8, 27, ActivationFormat::kNone, decode_int64, nullptr},
    {StorageType::kUInt8, "uint8", StorageClass::kDense, 1, 1, -1, ActivationFormat::kNone, decode_uint8, nullptr},
    {StorageType::kBool, "bool", StorageClass::kDense, 1, 1, -1, ActivationFormat::kNone, decode_bool, nullptr},
    {StorageType::kInt16, "int16", StorageClass::kDense, 1, 2, 25, ActivationFormat::kNone, decode_int16, nullptr},
    {StorageType::kUInt16, "uint16", StorageClass::kDense, 1, 2, -1, ActivationFormat::kNone, decode_uint16, nullptr},
    {StorageType::kUInt32, "uint32", StorageClass::kDense, 1, 4, -1, ActivationFormat::kNone, decode_uint32, nullptr},
    {StorageType::kUInt64, "uint64", StorageClass::kDense, 1, 8, -1, ActivationFormat::kNone, decode_uint64, nullptr},
    {StorageType::kF64, "f64", StorageClass::kDense, 1, 8, 28, ActivationFormat::kNone, decode_f64, nullptr},
    {StorageType::kDQ4, "dq4", StorageClass::kDual, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kDQ8, "dq8", StorageClass::kDual, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kDQ6, "dq6", StorageClass::kOpaque, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kDQ12, "dq12", StorageClass::kOpaque, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kDQT, "dqt", StorageClass::kDual, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kQ4_0, "q4_0", StorageClass::kBlock, 32, 18, 2, ActivationFormat::kQ8x32, decode_q4_0, encode_q4_0},
    {StorageType::kQ8_0, "q8_0", StorageClass::kBlock, 32, 34, 8, ActivationFormat::kQ8x32, decode_q8_0, encode_q8_0},
    {StorageType::kQ4_1, "q4_1", StorageClass::kBlock, 32, 20, 3, ActivationFormat::kQ8x32, decode_q4_1, encode_q4_1},
    {StorageType::kQ5_0, "q5_0", StorageClass::kBlock, 32, 22, 6, ActivationFormat::kQ8x32, decode_q5_0, encode_q5_0},
    {StorageType::kQ5_1, "q5_1", StorageClass::kBlock, 32, 24, 7, ActivationFormat::kQ8x32, decode_q5_1, encode_q5_1},
    {StorageType::kQ8_1, "q8_1", StorageClass::kBlock, 32, 36, 9, ActivationFormat::kNone, decode_q8_1, encode_q8_1},
    {StorageType::kSparseF16, "sparse_f16", StorageClass::kSparse, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kSparseDQ8, "sparse_dq8", StorageClass::kOpaque, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kSparse2_4, "sparse_2_4", StorageClass::kSparse, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kSparseDQ4_2_4, "sparse_dq4_2_4", StorageClass::kOpaque, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kNullRef, "null_ref", StorageClass::kVirtual, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kSharedRef, "shared_ref", StorageClass::kVirtual, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kLoraRef, "lora_ref", StorageClass::kOpaque, 0, 0, -1, ActivationFormat::kNone, nullptr, nullptr},
    {StorageType::kQ2_K, "q2_k", StorageClass::kBlock, 256, 84, 10, ActivationFormat::kQ8x256, decode_q2_k, encode_q2_k},
    {StorageType::kQ3_K, "q3_k", StorageClass::kBlock, 256, 110, 11, ActivationFormat::kQ8x256, decode_q3_k, encode_q3_k},
    {StorageType::kQ4_K, "q4_k", StorageClass::kBlock, 256, 144, 12, ActivationFormat::kQ8x256, decode_q4_k, encode_q4_k},
    {StorageType::kQ5_K, "q5_k", StorageClass::kBlock, 256, 176, 13, ActivationFormat::kQ8x256, decode_q5_k, encode_q5_k},
    {StorageType::kQ6_K, "q6_k", StorageClass::kBlock, 256, 210, 14, ActivationFormat::kQ8x256, decode_q6_k, encode_q6_k},
    {StorageType::kQ8_K, "q8_k", StorageClass::kBlock, 256, 292, 15, ActivationFormat::kNone, decode_q8_k, encode_q8_k},
    {StorageType::kIQ1_S, "iq1_s", StorageClass::kBlock, 256, 50, 19, ActivationFormat::kQ8x256, decode_iq1_s, nullptr},
    {StorageType::kIQ1_M, "iq1_m", StorageClass::kBlock, 256, 56, 29, ActivationFormat::kQ8x256, decode_iq1_m, nullptr},
    {StorageType::kIQ2_XXS, "iq2_xxs", StorageClass::kBlock, 256, 66, 16, ActivationFormat::kQ8x256, decode_iq2_xxs, nullptr},
    {StorageType::kIQ2_XS, "iq2_xs", StorageClass::kBlock, 256, 74, 17, ActivationFormat::kQ8x256, decode_iq2_xs, nullptr},
    {StorageType::kIQ3_XXS, "iq3_xxs", StorageClass::kBlock, 256, 98, 18, ActivationFormat::kQ8x256, decode_iq3_xxs, nullptr},
    {StorageType::kIQ4_NL, "iq4_nl", StorageClass::kBlock, 32, 18, 20, ActivationFormat::kQ8x32, decode_iq4_nl, encode_iq4_nl},
    {StorageType::kIQ4_XS, "iq4_xs", StorageClass::kBlock, 256, 136, 23, ActivationFormat::kQ8x256, decode_iq4_xs, encode_iq4_xs},
    {StorageType::kIQ2_S, "iq2_s", StorageClass::kBlock, 256, 82, 22, ActivationFormat::kQ8x256, decode_iq2_s, nullptr},
    {StorageType::kIQ3_S, "iq3_s", StorageClass::kBlock, 256, 110, 21, ActivationFormat::kQ8x256, decode_iq3_s, nullptr},
    {StorageType::kTQ1_0, "tq1_0", StorageClass::kBlock, 256, 54, 34, ActivationFormat::kQ8x256, decode_tq1_0, encode_tq1_0},
    {StorageType::kTQ2_0, "tq2_0", StorageClass::kBlock, 256, 66, 35, ActivationFormat::kQ8x256, decode_tq2_0, encode_tq2_0},
    {StorageType::kMXFP4, "mxfp4", StorageClass::kBlock, 32, 17, 39, ActivationFormat::kQ8x32, decode_mxfp4, encode_mxfp4},
    {StorageType::kNVFP4, "nvfp4", StorageClass::kBlock, 64, 36, 40, ActivationFormat::kQ8x32, decode_nvfp4, encode_nvfp4},
    {StorageType::kQ1_0, "q1_0", StorageClass::kBlock, 128, 18, 41, ActivationFormat::kQ8x32, decode_q1_0, nullptr, false},
    {StorageType::kQ2_0, "q2_0", StorageClass::kBlock, 64, 18, 42, ActivationFormat::kQ8x32, decode_q2_0, nullptr, false},
};
// clang-format on

constexpr std::size_t kTypeValues = 256;
constexpr std::uint8_t kNoRow = 0xFF;

/// Row number by storage type value.
constexpr auto kRowOfType = [] {
  std::array<std::uint8_t, kTypeValues> rows{};
  for (auto& row : rows) row = kNoRow;
  for (std::size_t i = 0; i < std::size(kFormats); ++i)
    rows[static_cast<std::size_t>(kFormats[i].type)] = static_cast<std::uint8_t>(i);
  return rows;
}();

/// "unknown type 0x7f" for every value, so that a name can be returned without a buffer of the caller.
constexpr std::string_view kUnknownStem = "unknown type 0x";
constexpr std::size_t kUnknownLength = kUnknownStem.size() + 2;
constexpr auto kUnknownNames = [] {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::array<char, kUnknownLength>, kTypeValues> names{};
  for (std::size_t value = 0; value < kTypeValues; ++value) {
    for (std::size_t i = 0; i < kUnknownStem.size(); ++i) names[value][i] = kUnknownStem[i];
    names[value][kUnknownLength - 2] = kDigits[value >> 4];
    names[value][kUnknownLength - 1] = kDigits[value & 15];
  }
  return names;
}();

constexpr bool ordered_by_value() {
  for (std::size_t i = 1; i < std::size(kFormats); ++i)
    if (kFormats[i - 1].type >= kFormats[i].type) return false;
  return true;
}
static_assert(ordered_by_value(), "rows are in the order of their values, each value once");

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(StorageType type) {
  const std::uint8_t row = kRowOfType[static_cast<std::uint8_t>(type)];
  return row == kNoRow ? nullptr : &kFormats[row];
}

const Format* find_format(std::string_view name) {
  for (const Format& format : kFormats)
    if (format.name == name) return &format;
  return nullptr;
}

const Format* find_gguf_format(std::uint32_t gguf_type) {
  for (const Format& format : kFormats)
    if (format.gguf_type >= 0 && static_cast<std::uint32_t>(format.gguf_type) == gguf_type) return &format;
  return nullptr;
}

std::string_view storage_type_name(StorageType type) {
  const Format* format = find_format(type);
  if (format != nullptr) return format->name;
  const auto& name = kUnknownNames[static_cast<std::uint8_t>(type)];
  return {name.data(), name.size()};
}

}  // namespace hk::kernels
