// Is this text valid UTF-8? One strict check for everything that reads names and texts from files.
//
// Layer: base, standard library only. Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hk {

/// Offset of the first byte that is not part of a valid UTF-8 sequence; text.size() when all of it is valid.
inline std::size_t find_invalid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t size = text.size();
  std::size_t i = 0;
  const auto continuation = [&](std::size_t at) { return at < size && (bytes[at] & 0xC0) == 0x80; };
  while (i < size) {
    // Mostly ASCII: eight bytes at a time while no high bit is set.
    while (i + 8 <= size) {
      std::uint64_t word;
      std::memcpy(&word, bytes + i, 8);
      if ((word & 0x8080808080808080u) != 0) break;
      i += 8;
    }
    if (i >= size) break;
    const unsigned char lead = bytes[i];
    if (lead < 0x80) {
      i += 1;
    } else if (lead >= 0xC2 && lead <= 0xDF) {
      if (!continuation(i + 1)) return i;
      i += 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      if (!continuation(i + 1) || !continuation(i + 2)) return i;
      if ((lead == 0xE0 && bytes[i + 1] < 0xA0) || (lead == 0xED && bytes[i + 1] > 0x9F)) return i;
      i += 3;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      if (!continuation(i + 1) || !continuation(i + 2) || !continuation(i + 3)) return i;
      if ((lead == 0xF0 && bytes[i + 1] < 0x90) || (lead == 0xF4 && bytes[i + 1] > 0x8F)) return i;
      i += 4;
    } else {
      return i;
    }
  }
  return size;
}

inline bool is_valid_utf8(std::string_view text) { return find_invalid_utf8(text) == text.size(); }

}  // namespace hk
