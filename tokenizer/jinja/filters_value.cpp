// Filters for single values: defaults, numbers, JSON, lengths, attributes.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/jinja/number_parse.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

Value default_value(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("default", arguments, {"default_value", "boolean"});
  if (input.is_undefined() || (args.flag(1) && !truthy(input))) return args.get(0, Value::string(""));
  return input;
}

Value absolute(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("abs", arguments);
  if (input.is_float()) return Value::number(std::fabs(input.as_number()));
  if (!is_any_integer(input)) fail_type(fmt::format("bad operand type for abs(): '{}'", type_name(input)));
  return integer_compare(input, Value::integer(0)) < 0 ? integer_negate(input) : positive(input);
}

Value to_integer(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("int", arguments, {"default", "base"});
  const Value absent = args.get(0, Value::integer(0));
  require_defined(input);
  if (is_any_integer(input)) return positive(input);
  try {
    if (input.is_float()) return integer_from_double(input.as_number());
  } catch (const Failure&) {  // NaN and infinities
    return absent;
  }
  if (!input.is_string()) return absent;
  if (auto whole = parse_integer(input.view(), args.integer(1, 10))) return *whole;
  const auto real = parse_float(input.view());
  if (!real || !std::isfinite(*real)) return absent;
  return integer_from_double(*real);
}

Value to_float(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("float", arguments, {"default"});
  const Value absent = args.get(0, Value::number(0));
  require_defined(input);
  if (is_any_number(input)) return Value::number(number_of(input));
  if (!input.is_string()) return absent;
  const auto real = parse_float(input.view());
  return real ? Value::number(*real) : absent;
}

/// Rounds to `digits` decimals, halves to even of the exact binary value, as Python does.
double round_half_even(double value, std::int64_t digits) {
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits < -308) return std::copysign(0.0, value);
  if (digits >= 0) return std::strtod(fmt::format("{:.{}f}", value, digits).c_str(), nullptr);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

Value round_integer(const Value& value, std::int64_t digits) {
  if (digits >= 0) return positive(value);
  if (digits < -40) return Value::integer(0);
  const Value unit = integer_power(Value::integer(10), Value::integer(-digits));
  const Value rest = integer_modulo(value, unit);
  const Value floor = integer_subtract(value, rest);
  const int half = integer_compare(integer_multiply(rest, Value::integer(2)), unit);
  const bool odd =
      integer_compare(integer_modulo(integer_floor_divide(value, unit), Value::integer(2)), Value::integer(0)) != 0;
  return half > 0 || (half == 0 && odd) ? integer_add(floor, unit) : floor;
}

Value round_filter(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("round", arguments, {"precision", "method"});
  const std::int64_t digits = args.integer(0, 0);
  const std::string_view method = args.has(1) ? args.text(1).view() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail(FailureKind::kFilterArgument, "method must be common, ceil or floor");
  if (!is_any_number(input)) fail_type(fmt::format("type {} doesn't define __round__ method", type_name(input)));
  if (method == "common") {
    if (is_any_integer(input)) return round_integer(input, digits);
    return Value::number(round_half_even(input.as_number(), digits));
  }
  const Value factor = binary(BinaryOperator::kPower, Value::integer(10), Value::integer(digits));
  const double scaled = number_of(binary(BinaryOperator::kMultiply, input, factor));
  if (!std::isfinite(scaled)) fail(FailureKind::kOverflow, "cannot round an infinite number");
  const Value whole = integer_from_double(method == "ceil" ? std::ceil(scaled) : std::floor(scaled));
  return binary(BinaryOperator::kDivide, whole, factor);
}

Value length_filter(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("length", arguments);
  return Value::integer(length_of(input));
}

Value items_filter(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("items", arguments);
  if (!input.is_dict() && !input.is_undefined()) {
    return make_generator(1, [](Value&) -> bool { fail_type("Can only get item pairs from a mapping."); });
  }
  return make_generator(input.depth() + 1, [input, index = std::size_t{0}](Value& out) mutable {
    if (input.is_undefined() || index >= input.as_dict().size()) return false;
    const auto& [key, value] = input.as_dict().entries()[index++];
    out = Value::tuple({key, value});
    return true;
  });
}

Value attribute_filter(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("attr", arguments, {"name"}, 1);
  require_defined(input);
  const Text name = to_text(args[0]);
  if (auto found = find_attribute(input, name.view())) return *found;
  return Value::undefined({.hint = {}, .name = std::string(name.view()), .owner = type_name(input)});
}

Value to_json(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = args.flag(0);
  if (args.has(1) && !args[1].is_none()) {
    style.item_separator.assign(1, ',');
    if (args[1].is_string()) {
      style.indent = args[1].view();
    } else {
      const std::int64_t width = args.integer(1, 0);
      if (width > 1000) fail(FailureKind::kLimit, "tojson: an indent of more than 1000 blanks");
      style.indent = std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ');
    }
  }
  if (args.has(2) && !args[2].is_none()) {
    const auto separators = collect(args[2]);
    if (separators.size() != 2 || !separators[0].is_string() || !separators[1].is_string())
      fail(FailureKind::kValue, "tojson: separators must be a pair of strings");
    style.item_separator = separators[0].view();
    style.key_separator = separators[1].view();
  }
  style.sort_keys = args.flag(3);
  return Value::string(dump_json(input, style));
}

Value random_filter(Runtime&, const Value&, Arguments&) {
  fail(FailureKind::kSecurity, "the filter 'random' is refused: the same conversation must give the same prompt");
}

constexpr FilterEntry kFilters[] = {
    {"default", default_value}, {"d", default_value},       {"abs", absolute},         {"int", to_integer},
    {"float", to_float},        {"round", round_filter},    {"length", length_filter}, {"count", length_filter},
    {"items", items_filter},    {"attr", attribute_filter}, {"tojson", to_json},       {"random", random_filter},
};

}  // namespace

std::span<const FilterEntry> value_filters() { return kFilters; }

}  // namespace hk::tokenizer::jinja
