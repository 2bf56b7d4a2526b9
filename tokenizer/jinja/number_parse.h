// Texts as numbers, as int() and float() of Python read them.
//
// Layer: tokenizer/jinja.
#pragma once

#include <optional>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

/// int(text, base): blanks around, sign, prefix, single underscores between digits. Nullopt when it is none.
std::optional<Value> parse_integer(std::string_view text, std::int64_t base);
/// float(text), with inf and nan.
std::optional<double> parse_float(std::string_view text);

}  // namespace hk::tokenizer::jinja
