// Digits of numbers.
#include "tokenizer/jinja/number_format.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "tokenizer/jinja/integer.h"

namespace hk::tokenizer::jinja {

std::string float_digits(double magnitude, char kind, std::int64_t precision, bool alternate) {
  const bool upper = kind == 'E' || kind == 'F' || kind == 'G';
  magnitude = std::fabs(magnitude);
  if (std::isinf(magnitude)) return upper ? "INF" : "inf";
  if (std::isnan(magnitude)) return upper ? "NAN" : "nan";
  if (precision < 0) precision = 6;
  const std::string pattern = fmt::format("%{}.*{}", alternate ? "#" : "", kind);
  const int size = std::snprintf(nullptr, 0, pattern.c_str(), static_cast<int>(precision), magnitude);
  std::string out(static_cast<std::size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), pattern.c_str(), static_cast<int>(precision), magnitude);
  out.pop_back();
  return out;
}

std::string integer_digits(const Value& integer, unsigned base, bool upper) {
  if (base == 10) {
    std::string text = integer_text(integer);
    return text[0] == '-' ? text.substr(1) : text;
  }
  Value left = is_negative(integer) ? integer_negate(integer) : integer;
  if (left.is_integral()) {
    const auto magnitude = static_cast<std::uint64_t>(left.as_int());
    if (base == 2) return fmt::format("{:b}", magnitude);
    if (base == 8) return fmt::format("{:o}", magnitude);
    return upper ? fmt::format("{:X}", magnitude) : fmt::format("{:x}", magnitude);
  }
  const Value divisor = Value::integer(base);
  std::string out;
  while (integer_compare(left, Value::integer(0)) > 0) {
    const auto digit = static_cast<std::size_t>(integer_modulo(left, divisor).as_int());
    out.insert(out.begin(), (upper ? "0123456789ABCDEF" : "0123456789abcdef")[digit]);
    left = integer_floor_divide(left, divisor);
  }
  return out;
}

bool is_negative(const Value& number) {
  if (number.is_float()) return std::signbit(number.as_number()) && !std::isnan(number.as_number());
  return integer_compare(number, Value::integer(0)) < 0;
}

std::string grouped(std::string_view digits, char separator, std::size_t size) {
  const std::size_t end = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < end; ++i) {
    if (i > 0 && (end - i) % size == 0) out += separator;
    out += digits[i];
  }
  return out + std::string(digits.substr(end));
}

}  // namespace hk::tokenizer::jinja
