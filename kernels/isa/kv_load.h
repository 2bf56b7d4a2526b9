// Reading and writing elements of the KV cache as vectors of floats.
//
// Part of the level sources (see vec.h).
#pragma once

#include "kernels/isa/half_words.h"
#include "kernels/isa/math.h"
#include "kernels/kv_type.h"

namespace hk::kernels {
namespace {

template <KvType kType>
HK_INLINE vf load_kv(const void* base, std::size_t index) {
  const auto* bytes = static_cast<const std::uint8_t*>(base) + index * kv_element_bytes(kType);
  if constexpr (kType == KvType::kF32) {
    return load_f(bytes);
  } else if constexpr (kType == KvType::kF16) {
    return load_half(bytes);
  } else {
    return load_bf16(bytes);
  }
}

/// The `count` < W values at `index`, zeros behind them.
template <KvType kType>
HK_INLINE vf load_kv_first(const void* base, std::size_t index, int count) {
  if constexpr (kType == KvType::kF32) {
    return load_first(static_cast<const float*>(base) + index, count);
  } else {
    alignas(64) std::uint16_t words[W] = {};
    for (int i = 0; i < count; ++i) words[i] = load16(static_cast<const std::uint16_t*>(base) + index + i);
    return load_kv<kType>(words, 0);
  }
}

/// W floats as words of a 16-bit type.
template <KvType kType>
HK_INLINE void to_words(std::uint16_t* words, vf v) {
  if constexpr (kType == KvType::kF16) {
    store_half(words, v);
  } else {
    store_bf16(words, v);
  }
}

}  // namespace
}  // namespace hk::kernels
