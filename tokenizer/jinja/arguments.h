// Binder: matches the arguments of a call with the parameters of a built-in function or filter.
//
// Layer: tokenizer/jinja. Too many, unknown, repeated or missing arguments are TypeErrors in the words of Python.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

class Binder {
 public:
  /// Parameters in order; `required` of them must be given. With `positional_only` names are refused.
  Binder(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> parameters,
         std::size_t required = 0, bool positional_only = false);

  bool has(std::size_t index) const { return values_[index] != nullptr; }
  const Value& operator[](std::size_t index) const { return *values_[index]; }  ///< only when has(index)
  Value get(std::size_t index, Value absent = {}) const { return has(index) ? *values_[index] : absent; }
  bool flag(std::size_t index, bool absent = false) const;             ///< truth of the argument
  std::int64_t integer(std::size_t index, std::int64_t absent) const;  ///< throws TypeError when it is no integer
  /// Text of a string argument; throws TypeError when it is none.
  const Text& text(std::size_t index) const;

 private:
  std::string function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

/// For functions without any parameter.
void expect_no_arguments(std::string_view function, const Arguments& arguments);

}  // namespace hk::tokenizer::jinja
