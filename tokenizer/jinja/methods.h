// Methods and attributes of the built-in types.
//
// Layer: tokenizer/jinja.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "tokenizer/jinja/objects.h"
#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

struct MethodEntry {
  const char* name;
  BuiltinMethod method;  ///< null: changes the object in place, which the sandbox refuses
};

std::span<const MethodEntry> string_methods();    // string_methods.cpp
std::span<const MethodEntry> string_questions();  // string_questions.cpp: find, count, is...
std::span<const MethodEntry> string_layout();     // string_layout.cpp: padding, splitting, formatting

/// Bound method or attribute of a plain value; `hidden` makes the answer for methods that the sandbox refuses.
std::optional<Value> find_method(const Value& object, std::string_view name, const std::function<Value()>& hidden);

}  // namespace hk::tokenizer::jinja
