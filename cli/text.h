// Numbers and foreign text as people read them on a screen.
//
// Layer: cli.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hk::cli {

/// "512 B", "1.5 KiB", "10.1 MiB"; binary units.
std::string bytes_text(std::uint64_t bytes);
/// "812.4 MB/s"; decimal units, as disks and memory are sold.
std::string rate_text(double bytes_per_second);
/// "1,234,567".
std::string grouped(std::uint64_t number);
/// "15.2 M", "1.24 B": parameter counts.
std::string count_text(std::uint64_t number);
/// Text out of a file made safe for a terminal: control characters as \n, \t, \x1b; other UTF-8 as it is, broken UTF-8
/// as \xNN.
std::string printable(std::string_view text);
/// Bytes of "4G", "512M", "64K" (binary units) or a plain number. Throws hk::Error (usage) naming `option`.
std::uint64_t parse_size(std::string_view text, std::string_view option);

}  // namespace hk::cli
