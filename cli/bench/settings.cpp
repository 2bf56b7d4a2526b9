// Lists, ranges and names (see settings.h).
#include "cli/bench/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <system_error>

#include "base/error.h"

namespace hk::cli {
namespace {

constexpr std::size_t kMostValues = 4096;
constexpr std::size_t kLargest = std::size_t{1} << 31;

[[noreturn]] void refuse(std::string_view part, std::string_view option) {
  throw Error(fmt::format("{}: '{}' is neither a number nor a range; expected N, FIRST-LAST, FIRST-LAST+STEP or "
                          "FIRST-LAST*FACTOR, several of them between commas",
                          option, part),
              ErrorKind::kUsage);
}

std::size_t number(std::string_view digits, std::string_view part, std::string_view option) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty() || value > kLargest)
    refuse(part, option);
  return value;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text, std::string_view option) {
  std::vector<std::string> parts;
  for (std::size_t from = 0;;) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    if (comma == from)
      throw Error(fmt::format("{}: '{}' has an empty part; expected values between commas", option, text),
                  ErrorKind::kUsage);
    parts.emplace_back(text.substr(from, comma - from));
    if (comma == text.size()) return parts;
    from = comma + 1;
  }
}

std::vector<std::size_t> parse_counts(std::string_view text, std::string_view option) {
  std::vector<std::size_t> values;
  for (const std::string& part : split_list(text, option)) {
    const std::size_t dash = part.find('-');
    if (dash == std::string::npos) {
      values.push_back(number(part, part, option));
      continue;
    }
    const std::string_view whole(part);
    const std::size_t sign = part.find_first_of("+*", dash);
    const std::size_t first = number(whole.substr(0, dash), part, option);
    const std::size_t last =
        number(whole.substr(dash + 1, sign == std::string::npos ? sign : sign - dash - 1), part, option);
    const bool times = sign != std::string::npos && part[sign] == '*';
    const std::size_t step = sign == std::string::npos ? 1 : number(whole.substr(sign + 1), part, option);
    if (first > last || step < (times ? 2U : 1U) || (times && first == 0))
      throw Error(fmt::format("{}: the range '{}' never gets to its end", option, part), ErrorKind::kUsage);
    for (std::size_t value = first; value <= last; value = times ? value * step : value + step) {
      if (values.size() == kMostValues)
        throw Error(fmt::format("{}: '{}' are more than {} values", option, text, kMostValues), ErrorKind::kUsage);
      values.push_back(value);
    }
  }
  return values;
}

std::string test_name(const engine::SpeedTest& test) {
  std::string name;
  if (test.prompt != 0) name = fmt::format("pp{}", test.prompt);
  if (test.generate != 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", test.generate);
  if (test.depth != 0) name += fmt::format(" @ d{}", test.depth);
  return name;
}

}  // namespace hk::cli
