// Numbers as text with sign, width, precision, base and grouping: the part that both formatting languages share.
//
// Layer: tokenizer/jinja.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

inline constexpr std::int64_t kMaxFormatWidth = 1 << 20;  ///< wider or more precise fields are refused

/// Digits without sign: `kind` one of e E f F g G; precision negative means the default 6. `alternate` keeps the point.
std::string float_digits(double magnitude, char kind, std::int64_t precision, bool alternate);
/// Digits without sign or prefix of any integer in base 2, 8, 10 or 16.
std::string integer_digits(const Value& integer, unsigned base, bool upper);
bool is_negative(const Value& number);
/// Puts `separator` between groups of `size` digits of the whole part of a decimal number.
std::string grouped(std::string_view digits, char separator, std::size_t size);

}  // namespace hk::tokenizer::jinja
