// Matching arguments with parameters.
#include "tokenizer/jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {

Binder::Binder(std::string_view function, const Arguments& arguments,
               std::initializer_list<std::string_view> parameters, std::size_t required, bool positional_only)
    : function_(function), names_(parameters), values_(parameters.size(), nullptr) {
  if (arguments.positional.size() > names_.size())
    fail_type(fmt::format("{}() takes at most {} arguments ({} given)", function, names_.size(),
                          arguments.positional.size()));
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    if (positional_only) fail_type(fmt::format("{}() takes no keyword arguments", function));
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) fail_type(fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    const Value*& slot = values_[static_cast<std::size_t>(found - names_.begin())];
    if (slot != nullptr) fail_type(fmt::format("{}() got multiple values for argument '{}'", function, name));
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (values_[i] == nullptr) fail_type(fmt::format("{}() is missing the argument '{}'", function, names_[i]));
}

bool Binder::flag(std::size_t index, bool absent) const { return has(index) ? truthy(*values_[index]) : absent; }

std::int64_t Binder::integer(std::size_t index, std::int64_t absent) const {
  if (!has(index)) return absent;
  const Value& value = *values_[index];
  if (is_big(value)) fail(FailureKind::kOverflow, "Python int too large to convert to C ssize_t");
  if (!value.is_integral())
    fail_type(fmt::format("{}(): '{}' object cannot be interpreted as an integer", function_, type_name(value)));
  return value.as_int();
}

const Text& Binder::text(std::size_t index) const {
  const Value& value = *values_[index];
  if (!value.is_string())
    fail_type(fmt::format("{}() argument '{}' must be str, not {}", function_, names_[index], type_name(value)));
  return value.text();
}

void expect_no_arguments(std::string_view function, const Arguments& arguments) {
  if (!arguments.positional.empty() || !arguments.named.empty())
    fail_type(fmt::format("{}() takes no arguments ({} given)", function,
                          arguments.positional.size() + arguments.named.size()));
}

}  // namespace hk::tokenizer::jinja
