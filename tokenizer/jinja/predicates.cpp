// The tests behind `is`.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

template <bool (*holds)(const Value&)>
bool plain(Runtime&, const Value& input, Arguments& arguments) {
  if (!arguments.positional.empty() || !arguments.named.empty())
    fail_type("this test takes no arguments (is 'else', 'and' or 'or' missing after it?)");
  return holds(input);
}

template <Comparison how>
bool compares(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("test", arguments, {"other"}, 1);
  return compare(how, input, args[0]);
}

bool is_defined(const Value& value) { return !value.is_undefined(); }
bool is_undefined(const Value& value) { return value.is_undefined(); }
/// Python's undefined value has a call operator, which only fails.
bool can_be_called(const Value& value) { return value.is_undefined() || is_callable(value); }
bool is_none(const Value& value) { return value.is_none(); }
bool is_boolean(const Value& value) { return value.is_bool(); }
bool is_true(const Value& value) { return value.is_bool() && value.as_bool(); }
bool is_false(const Value& value) { return value.is_bool() && !value.as_bool(); }
bool is_integer(const Value& value) { return is_any_integer(value) && !value.is_bool(); }
bool is_float(const Value& value) { return value.is_float(); }
bool is_string(const Value& value) { return value.is_string(); }
bool is_mapping(const Value& value) { return value.is_dict(); }
bool is_markup(const Value& value) { return value.is_markup(); }
bool is_sequence(const Value& value) {
  if (value.is_object()) return value.as_object()->subscriptable();
  return find_length(value).has_value();
}

bool remainder_is(const Value& value, std::int64_t divisor, std::int64_t wanted) {
  return equals(binary(BinaryOperator::kModulo, value, Value::integer(divisor)), Value::integer(wanted));
}
bool is_odd(const Value& value) { return remainder_is(value, 2, 1); }
bool is_even(const Value& value) { return remainder_is(value, 2, 0); }

template <bool upper>
bool in_case(const Value& value) {
  const Text text = to_text(value);
  bool any = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text.view(), at);
    if ((upper ? jinja::is_lower(point.value) : jinja::is_upper(point.value)) || is_title(point.value)) return false;
    any = any || (upper ? jinja::is_upper(point.value) : jinja::is_lower(point.value));
    at += point.size;
  }
  return any;
}

bool divisible_by(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("divisibleby", arguments, {"num"}, 1);
  return equals(binary(BinaryOperator::kModulo, input, args[0]), Value::integer(0));
}

/// One and the same object; numbers and strings that Python would share count as one.
bool same_as(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("sameas", arguments, {"other"}, 1);
  const Value& other = args[0];
  if (input.type() != other.type()) return false;
  if (input.is_none()) return true;
  if (input.is_number() || input.is_string()) return equals(input, other) && input.is_markup() == other.is_markup();
  return input.identity() == other.identity();
}

bool is_filter_name(const Value& value) { return value.is_string() && find_filter(value.view()) != nullptr; }
bool is_test_name(const Value& value) { return value.is_string() && find_test(value.view()) != nullptr; }

constexpr TestEntry kTests[] = {
    {"boolean", plain<is_boolean>},
    {"callable", plain<can_be_called>},
    {"defined", plain<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", compares<Comparison::kEqual>},
    {"equalto", compares<Comparison::kEqual>},
    {"==", compares<Comparison::kEqual>},
    {"escaped", plain<is_markup>},
    {"even", plain<is_even>},
    {"false", plain<is_false>},
    {"filter", plain<is_filter_name>},
    {"float", plain<is_float>},
    {"ge", compares<Comparison::kGreaterEqual>},
    {">=", compares<Comparison::kGreaterEqual>},
    {"greaterthan", compares<Comparison::kGreater>},
    {"gt", compares<Comparison::kGreater>},
    {">", compares<Comparison::kGreater>},
    {"in", compares<Comparison::kIn>},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", compares<Comparison::kLessEqual>},
    {"<=", compares<Comparison::kLessEqual>},
    {"lessthan", compares<Comparison::kLess>},
    {"lower", plain<in_case<false>>},
    {"lt", compares<Comparison::kLess>},
    {"<", compares<Comparison::kLess>},
    {"mapping", plain<is_mapping>},
    {"ne", compares<Comparison::kNotEqual>},
    {"!=", compares<Comparison::kNotEqual>},
    {"none", plain<is_none>},
    {"number", plain<is_any_number>},
    {"odd", plain<is_odd>},
    {"sameas", same_as},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", plain<is_test_name>},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", plain<in_case<true>>},
};

}  // namespace

const TestEntry* find_test(std::string_view name) {
  for (const TestEntry& entry : kTests)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace hk::tokenizer::jinja
