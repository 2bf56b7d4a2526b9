// Numbers and foreign text as people read them.
#include "cli/text.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"

namespace hk::cli {

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.95 would be shown as 1024.0 of a unit.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string rate_text(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9);
  return fmt::format("{:.1f} MB/s", bytes_per_second / 1e6);
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string count_text(std::uint64_t number) {
  const auto value = static_cast<double>(number);
  if (number >= 1'000'000'000) return fmt::format("{:.2f} B", value / 1e9);
  if (number >= 1'000'000) return fmt::format("{:.1f} M", value / 1e6);
  if (number >= 1'000) return fmt::format("{:.1f} K", value / 1e3);
  return std::to_string(number);
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t valid_end = find_invalid_utf8(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (i == valid_end) {
      out += fmt::format("\\x{:02x}", byte);
      valid_end = i + 1 + find_invalid_utf8(text.substr(i + 1));
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\r') {
      out += "\\r";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xC2 && i + 1 < valid_end && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      // U+0080 to U+009F: terminals take some of them for control sequences.
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + 1]));
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::uint64_t parse_size(std::string_view text, std::string_view option) {
  const auto wrong = [&]() -> Error {
    return Error(
        fmt::format("{} is '{}'; a size such as 4G, 512M, 64K or a number of bytes was expected", option, text),
        ErrorKind::kUsage);
  };
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc() || stop == text.data()) throw wrong();
  std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  int shift = 0;
  if (!unit.empty()) {
    switch (unit[0]) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      case 't':
      case 'T':
        shift = 40;
        break;
      default:
        throw wrong();
    }
    unit.remove_prefix(1);
    if (!unit.empty() && unit != "B" && unit != "iB") throw wrong();
  }
  if (value > (std::numeric_limits<std::uint64_t>::max() >> shift)) throw wrong();
  return value << shift;
}

}  // namespace hk::cli
