// Reading numbers.
#include "tokenizer/jinja/number_parse.h"

#include <cstdlib>
#include <string>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/strings.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

/// Without blanks around, decimal digits of all scripts as ASCII.
std::string normalized(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text, at);
    const int digit = decimal_value(point.value);
    if (digit >= 0) {
      out += static_cast<char>('0' + digit);
    } else if (is_space(point.value)) {
      out += ' ';
    } else {
      out += text.substr(at, point.size);
    }
    at += point.size;
  }
  const std::size_t begin = out.find_first_not_of(' ');
  if (begin == std::string::npos) return {};
  return out.substr(begin, out.find_last_not_of(' ') - begin + 1);
}

unsigned digit_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? static_cast<unsigned>(lower - 'a') + 10 : 99;
}

}  // namespace

std::optional<Value> parse_integer(std::string_view text, std::int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) fail(FailureKind::kValue, "int() base must be >= 2 and <= 36, or 0");
  const std::string number = normalized(text);
  std::size_t at = 0;
  bool negative = false;
  if (at < number.size() && (number[at] == '-' || number[at] == '+')) negative = number[at++] == '-';
  auto radix = static_cast<unsigned>(base);
  if (at + 1 < number.size() && number[at] == '0') {
    const char mark = static_cast<char>(number[at + 1] | 0x20);
    const unsigned marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (radix == 0 || radix == marked)) {
      radix = marked;
      at += 2;
      if (at < number.size() && number[at] == '_') ++at;
    }
  }
  if (radix == 0) {
    radix = 10;
    // Without a base, leading zeros are only allowed for zero.
    if (number.size() > at + 1 && number[at] == '0' && number.find_first_not_of("0_", at) != std::string::npos)
      return std::nullopt;
  }
  std::string digits;
  bool after_digit = false;
  for (; at < number.size(); ++at) {
    if (number[at] == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    if (digit_value(number[at]) >= radix) return std::nullopt;
    digits += number[at];
    after_digit = true;
  }
  if (!after_digit) return std::nullopt;
  return integer_from_digits(digits, radix, negative);
}

std::optional<double> parse_float(std::string_view text) {
  const std::string number = normalized(text);
  std::string plain;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < number.size() && number[at] >= '0' && number[at] <= '9'; };
    if (number[i] == '_') {
      if (i == 0 || !digit(i - 1) || !digit(i + 1)) return std::nullopt;
      continue;
    }
    plain += static_cast<char>(number[i] >= 'A' && number[i] <= 'Z' ? number[i] | 0x20 : number[i]);
  }
  const std::size_t start = !plain.empty() && (plain[0] == '-' || plain[0] == '+') ? 1 : 0;
  const std::string_view body = std::string_view(plain).substr(start);
  if (body != "inf" && body != "infinity" && body != "nan") {
    // strtod knows hexadecimal numbers, Python does not.
    if (body.empty() || body.find_first_not_of("0123456789.e+-") != std::string_view::npos) return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (end != plain.c_str() + plain.size()) return std::nullopt;
  return value;
}

}  // namespace hk::tokenizer::jinja
