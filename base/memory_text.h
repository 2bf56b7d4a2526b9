// A size of memory for a sentence.
//
// Layer: base.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace hk {

/// "10.1 MiB", from 1 GiB on "1.25 GiB"; what would be 0.0 MiB and is not nothing, in "3 KiB" or "17 bytes".
inline std::string memory_text(std::uint64_t bytes) {
  if (bytes != 0 && bytes < 1024) return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
  if (bytes != 0 && bytes <= (1 << 20) / 20) return fmt::format("{} KiB", bytes / 1024);
  return bytes < (std::uint64_t{1} << 30) ? fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20)
                                          : fmt::format("{:.2f} GiB", static_cast<double>(bytes) / 0x1p30);
}

}  // namespace hk
