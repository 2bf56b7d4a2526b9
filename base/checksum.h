// A 64-bit checksum of bytes: finds damage and tells contents apart; not safe against somebody who wants them to agree.
//
// Layer: base, standard library only. Four independent lanes, so that it runs at about the speed of memory. The value
// depends on the byte order of the machine and is for files that stay on it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace hk {

inline std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0) {
  // Odd numbers with well mixed bits: the fractional parts of the golden ratio and of the square roots of 3 and 7.
  constexpr std::uint64_t kMix1 = 0x9E3779B97F4A7C15, kMix2 = 0xBB67AE8584CAA73B, kMix3 = 0xA54FF53A5F1D36F1;
  std::uint64_t lanes[4] = {seed ^ kMix1, seed + kMix2, seed ^ kMix3, ~seed};
  std::size_t at = 0;
  const auto word = [&](std::size_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  };
  for (; at + 32 <= bytes.size(); at += 32)
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = std::rotl((lanes[i] ^ word(at + 8 * i)) * kMix1, 29);
  std::uint64_t sum = bytes.size() * kMix3;
  for (const std::uint64_t lane : lanes) sum = std::rotl((sum ^ lane) * kMix2, 31);
  for (; at < bytes.size(); ++at) sum = std::rotl((sum ^ static_cast<std::uint64_t>(bytes[at])) * kMix1, 27);
  sum ^= sum >> 32;
  sum *= kMix2;
  return sum ^ sum >> 29;
}

inline std::uint64_t checksum(std::string_view text, std::uint64_t seed = 0) {
  return checksum(std::as_bytes(std::span(text)), seed);
}

}  // namespace hk
