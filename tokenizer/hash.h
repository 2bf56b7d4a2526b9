// Hashing of short texts and id pairs, and the map from a hash to a table slot.
//
// Layer: tokenizer. Values differ between builds of the program; they are never stored.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hk::tokenizer {

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline constexpr std::uint64_t kHashA = 0x9E3779B97F4A7C15ULL;  // odd constants with well spread bits
inline constexpr std::uint64_t kHashB = 0xC2B2AE3D27D4EB4FULL;

inline std::uint64_t hash_text(std::string_view text) {
  const char* p = text.data();
  std::size_t n = text.size();
  std::uint64_t h = kHashB ^ (n * kHashA);
  std::uint64_t word = 0;
  for (; n > 8; n -= 8, p += 8) {
    std::memcpy(&word, p, 8);
    h = mix(h ^ word, kHashA);
  }
  word = 0;
  if (n != 0) std::memcpy(&word, p, n);
  return mix(h ^ word, kHashB) ^ h;
}

inline std::uint64_t hash_pair(std::uint32_t left, std::uint32_t right) {
  return mix(((static_cast<std::uint64_t>(left) << 32) | right) ^ kHashB, kHashA);
}

/// Spreads a hash over [0, size) without a division; uses the high bits.
inline std::size_t slot_of(std::uint64_t hash, std::size_t size) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((static_cast<Wide>(hash) * size) >> 64);
}

}  // namespace hk::tokenizer
