// A size of memory for a sentence.
//
// Layer: base.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace hk {

/// "10.1 MiB", from 1 GiB on "1.25 GiB".
inline std::string memory_text(std::uint64_t bytes) {
  return bytes < (std::uint64_t{1} << 30) ? fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 0x1p20)
                                          : fmt::format("{:.2f} GiB", static_cast<double>(bytes) / 0x1p30);
}

}  // namespace hk
