// The table of storage types: one row per type, read by everything that sizes, checks, lists or runs tensors.
//
// Layer: kernels (numbers only; standard library). Layouts are those of spec/quants/QUANTS.md and HK-FORMAT.md
// section 5. Adding a format is: a decoder, an unpacker for the integer kernels (kernels/isa), a row here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hk::kernels {

/// Storage type of a tensor, with the values of the container (HK-FORMAT.md section 5).
enum class StorageType : std::uint8_t {
  kF32 = 0x00,
  kF16 = 0x01,
  kBF16 = 0x02,
  kFP8E4M3 = 0x03,
  kFP8E5M2 = 0x04,
  kInt8 = 0x05,
  kInt32 = 0x06,
  kInt64 = 0x07,
  kUInt8 = 0x08,
  kBool = 0x09,
  kInt16 = 0x0A,
  kUInt16 = 0x0B,
  kUInt32 = 0x0C,
  kUInt64 = 0x0D,
  kF64 = 0x0E,
  kDQ4 = 0x10,
  kDQ8 = 0x11,
  kDQ6 = 0x12,
  kDQ12 = 0x13,
  kDQT = 0x14,
  kQ4_0 = 0x15,
  kQ8_0 = 0x16,
  kQ4_1 = 0x17,
  kQ5_0 = 0x18,
  kQ5_1 = 0x19,
  kQ8_1 = 0x1A,
  kSparseF16 = 0x20,
  kSparseDQ8 = 0x21,
  kSparse2_4 = 0x22,
  kSparseDQ4_2_4 = 0x23,
  kNullRef = 0x30,
  kSharedRef = 0x31,
  kLoraRef = 0x32,
  kQ2_K = 0x40,
  kQ3_K = 0x41,
  kQ4_K = 0x42,
  kQ5_K = 0x43,
  kQ6_K = 0x44,
  kQ8_K = 0x45,
  kIQ1_S = 0x50,
  kIQ1_M = 0x51,
  kIQ2_XXS = 0x52,
  kIQ2_XS = 0x53,
  kIQ3_XXS = 0x54,
  kIQ4_NL = 0x55,
  kIQ4_XS = 0x56,
  kIQ2_S = 0x57,
  kIQ3_S = 0x58,
  kTQ1_0 = 0x60,
  kTQ2_0 = 0x61,
  kMXFP4 = 0x62,
  kNVFP4 = 0x63,
  // Numbers of our own, which no file holds: GGUF's types without one in .hk (Format::in_hk).
  kQ1_0 = 0xE0,
  kQ2_0 = 0xE1,
};

/// How the activation vector is prepared for a weight format (see kernels/activation.h).
enum class ActivationFormat : std::uint8_t {
  kNone,    ///< the engine does not run this weight type
  kF32,     ///< f32 as it is: float weights, and types that run through decoded floats
  kQ8x32,   ///< int8 codes, one f32 scale and one sum per 32 elements: legacy and FP4 types
  kQ8x256,  ///< int8 codes, one f32 scale per 256 elements, sums of 16: K, I and ternary types
};

/// What kind of payload a type has; decides which reader code applies.
enum class StorageClass : std::uint8_t {
  kDense,    ///< one element after another, block_elements == 1
  kBlock,    ///< GGUF-compatible blocks, QUANTS.md
  kDual,     ///< dq4, dq8, dqt: codes and separate scales
  kSparse,   ///< bitmask, 2:4
  kVirtual,  ///< null_ref, shared_ref
  kOpaque,   ///< no published layout: dq6, dq12, sparse_dq8, sparse_dq4_2_4, lora_ref
};

/// Exact decode of `n` elements (a whole number of blocks) to f32, bit for bit as QUANTS.md section 4 says.
using DecodeFn = void (*)(const void* blocks, float* out, std::size_t n);
/// Quantizes `n` f32 values (a whole number of blocks) by the recipes of QUANTS.md section 6.
using EncodeFn = void (*)(const float* values, void* blocks, std::size_t n);

struct Format {
  StorageType type;
  std::string_view name;  ///< as in HK-FORMAT.md: "q4_k"
  StorageClass storage_class;
  std::uint32_t block_elements;  ///< elements a block; 1 for dense types, 0 where the payload has no fixed block
  std::uint32_t block_bytes;     ///< bytes a block; 0 where the payload has no fixed block
  std::int32_t gguf_type;        ///< tensor type number in GGUF, -1 where GGUF has none
  ActivationFormat activation;   ///< kNone: refused by the engine as a weight
  DecodeFn decode;               ///< null where there is no element-wise decode (dual, sparse, virtual, opaque)
  EncodeFn encode;               ///< null where no quantizer is implemented
  bool in_hk = true;             ///< false: has no number in .hk; converted to q4_0 with the same values
};

/// All storage types, in the order of their values.
std::span<const Format> formats();
/// The row of a type; null for a value that is not in the table.
const Format* find_format(StorageType type);
const Format* find_format(std::string_view name);
/// The row for a GGUF tensor type number; null when unknown, retired or not storable.
const Format* find_gguf_format(std::uint32_t gguf_type);
/// Name for messages: the table's, or "unknown type 0x7f" (static buffer per value, thread safe).
std::string_view storage_type_name(StorageType type);

}  // namespace hk::kernels
