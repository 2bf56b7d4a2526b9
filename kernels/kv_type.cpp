// Names and exact elements of the KV cache's types (see kv_type.h).
#include "kernels/kv_type.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

template <typename T>
T read(const void* page, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(page) + offset, sizeof value);
  return value;
}

float plain_element(KvType type, const void* page, std::size_t index) {
  switch (type) {
    case KvType::kF16:
      return f16_to_f32(read<std::uint16_t>(page, 2 * index));
    case KvType::kBf16:
      return bf16_to_f32(read<std::uint16_t>(page, 2 * index));
    default:
      return read<float>(page, 4 * index);
  }
}

float scaled(const void* page, std::size_t code, std::size_t scale) {
  return static_cast<float>(read<std::int8_t>(page, code)) * bf16_to_f32(read<std::uint16_t>(page, scale));
}

}  // namespace

std::string_view kv_type_name(KvType type) {
  switch (type) {
    case KvType::kF16:
      return "f16";
    case KvType::kBf16:
      return "bf16";
    case KvType::kQ8_0:
      return "q8_0";
    case KvType::kF32:
      break;
  }
  return "f32";
}

std::optional<KvType> find_kv_type(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kKvTypes), std::end(kKvTypes), [&](KvType type) { return kv_type_name(type) == name; });
  if (found == std::end(kKvTypes)) return std::nullopt;
  return *found;
}

float key_element(KvType type, const void* page, std::size_t head_size, std::size_t position, std::size_t d) {
  const std::size_t group = position / kKeyGroup, lane = position % kKeyGroup;
  if (type != KvType::kQ8_0) return plain_element(type, page, (group * head_size + d) * kKeyGroup + lane);
  const std::size_t base = group * key_group_bytes(head_size);
  return scaled(page, base + (d / kDotBytes * kKeyGroup + lane) * kDotBytes + d % kDotBytes,
                base + key_code_bytes(head_size) + (d / kKeyBlock * kKeyGroup + lane) * 2);
}

float value_element(KvType type, const void* page, std::size_t value_size, std::size_t position, std::size_t d) {
  if (type != KvType::kQ8_0) return plain_element(type, page, position * value_size + d);
  return scaled(page, (position / kDotBytes * value_size + d) * kDotBytes + position % kDotBytes,
                kKvPage * value_size + (d / kValueBlock * kKvPage + position) * 2);
}

}  // namespace hk::kernels
