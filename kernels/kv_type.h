// Element types of the KV cache: their names, how many bytes a page takes, and the exact value of any element.
//
// Layer: kernels. A page holds kKvPage positions of one KV head. Its layout is chosen for the dot product of
// attention: positions are lanes of keys, dimensions are lanes of values.
//
//  f32, f16, bf16  keys [kKvPage / 16][head_size][16]; values [kKvPage][value_size].
//  q8_0, keys      for each 16 positions: codes [head_size / 4 rounded up][16][4], four dimensions of a position side
//  by
//                  side; then bf16 scales [head_size / 32 rounded up][16], one for 32 dimensions of a position; padded
//                  to 64 bytes. Dimensions past the end have code 0.
//  q8_0, values    codes [kKvPage / 4][value_size][4], four positions of a dimension side by side; then bf16 scales
//                  [value_size / 128 rounded up][kKvPage]. Values have no lasting outliers as keys do, so a scale
//                  serves 128 dimensions: weights of positions are multiplied by it before they are rounded, once a
//                  block.
// A code is from -127 to 127 and means code * scale. Scales are bf16, rounded up before the codes are made: they cost
// no accuracy and have the range of f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hk::kernels {

enum class KvType : std::uint8_t { kF32, kF16, kBf16, kQ8_0 };
/// All of them, in the order in which messages list them.
inline constexpr KvType kKvTypes[] = {KvType::kF16, KvType::kBf16, KvType::kQ8_0, KvType::kF32};

/// "f16", "bf16", "q8_0", "f32".
std::string_view kv_type_name(KvType type);
std::optional<KvType> find_kv_type(std::string_view name);

/// Positions in one KV page. Partial results are formed per page and merged in page order, so the order of additions is
/// a function of the position alone.
inline constexpr std::size_t kKvPage = 256;
/// Positions whose keys are interleaved: one vector of the widest level.
inline constexpr std::size_t kKeyGroup = 16;
/// Dimensions under one scale of q8_0.
inline constexpr std::size_t kKeyBlock = 32;
inline constexpr std::size_t kValueBlock = 128;
/// Elements that one 32-bit lane of the integer dot product takes.
inline constexpr std::size_t kDotBytes = 4;

// `static`: level sources use them, and an inline function compiled for a newer CPU must not reach the linker.

/// Bytes of an element; 0 for q8_0, whose elements share scales.
static constexpr std::size_t kv_element_bytes(KvType type) {
  return type == KvType::kF32 ? 4 : type == KvType::kQ8_0 ? 0 : 2;
}

/// q8_0: bytes of the codes of one key group (the scales follow), and of the group.
static constexpr std::size_t key_code_bytes(std::size_t head_size) {
  return (head_size + kDotBytes - 1) / kDotBytes * kDotBytes * kKeyGroup;
}
static constexpr std::size_t key_group_bytes(std::size_t head_size) {
  const std::size_t scales = (head_size + kKeyBlock - 1) / kKeyBlock * kKeyGroup * 2;
  return (key_code_bytes(head_size) + scales + 63) / 64 * 64;
}

/// Bytes of one page of keys or of values of one head, a multiple of 64.
static constexpr std::size_t key_page_bytes(KvType type, std::size_t head_size) {
  if (type == KvType::kQ8_0) return kKvPage / kKeyGroup * key_group_bytes(head_size);
  return kKvPage * head_size * kv_element_bytes(type);
}
static constexpr std::size_t value_page_bytes(KvType type, std::size_t value_size) {
  if (type == KvType::kQ8_0) return kKvPage * (value_size + (value_size + kValueBlock - 1) / kValueBlock * 2);
  return kKvPage * value_size * kv_element_bytes(type);
}

/// The exact value of one element of a page: the reference that kernels are compared with.
float key_element(KvType type, const void* page, std::size_t head_size, std::size_t position, std::size_t d);
float value_element(KvType type, const void* page, std::size_t value_size, std::size_t position, std::size_t d);

}  // namespace hk::kernels
