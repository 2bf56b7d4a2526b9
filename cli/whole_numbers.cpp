// The check that all options of whole numbers share (see whole_numbers.h).
#include "cli/whole_numbers.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <string>

#include "cli/text.h"

namespace hk::cli {
namespace {

/// The same number as the parser will read it; returns what is wrong with it, or nothing.
template <typename Number>
std::string to_decimal(std::string& text) {
  Number number = 0;
  const char *begin = text.data(), *end = begin + text.size();
  if (begin != end && *begin == '+') ++begin;
  const auto [rest, error] = std::from_chars(begin, end, number);
  if (error == std::errc::result_out_of_range && rest == end)
    return fmt::format("{} is too large a number", printable(text));
  if (error == std::errc{} && rest == end && begin != end) {
    text = fmt::format("{}", number);  // without leading zeros, which would make it octal
    return "";
  }
  return fmt::format("'{}' is no whole number{}", printable(text), std::is_signed_v<Number> ? "" : " from 0 on");
}

}  // namespace

void check_whole_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (type.starts_with("UINT")) option->transform(CLI::Validator(to_decimal<std::uint64_t>, ""));
    if (type.starts_with("INT")) option->transform(CLI::Validator(to_decimal<std::int64_t>, ""));
  }
  for (CLI::App* command : app.get_subcommands({})) check_whole_numbers(*command);
}

}  // namespace hk::cli
