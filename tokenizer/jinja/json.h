// JSON text to Value and back.
//
// Layer: tokenizer/jinja.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

/// Parses one JSON text. Strings get `origin`; keys keep their order; a repeated key keeps its first place and last
/// value; integers of any size are exact. Throws hk::Error that says where and why; deep nesting is refused.
Value parse_json(std::string_view text, Origin origin = Origin::kData);

/// json.dumps of Python.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  ///< text of one level; absent: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Throws Failure(kType) for what has no JSON form. Counts as data as a whole when it holds any.
Text dump_json(const Value& value, const JsonStyle& style = {});

}  // namespace hk::tokenizer::jinja
