// + - * / // % ** and the unary signs.
#include <fmt/format.h>

#include <cmath>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/formatting.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

const char* symbol(BinaryOperator how) {
  switch (how) {
    case BinaryOperator::kAdd:
      return "+";
    case BinaryOperator::kSubtract:
      return "-";
    case BinaryOperator::kMultiply:
      return "*";
    case BinaryOperator::kDivide:
      return "/";
    case BinaryOperator::kFloorDivide:
      return "//";
    case BinaryOperator::kModulo:
      return "%";
    case BinaryOperator::kPower:
      return "** or pow()";
  }
  return "?";
}

[[noreturn]] void fail_operands(BinaryOperator how, const Value& a, const Value& b) {
  fail_type(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol(how), type_name(a), type_name(b)));
}

double divisor(const Value& value, const char* what) {
  const double number = number_of(value);
  if (number == 0) fail(FailureKind::kZeroDivision, what);
  return number;
}

double floor_divide(double a, double b) {
  const double quotient = (a - modulo(a, b)) / b;
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Value power(const Value& a, const Value& b) {
  if (is_any_integer(a) && is_any_integer(b) && integer_compare(b, Value::integer(0)) >= 0) return integer_power(a, b);
  const double x = number_of(a), y = number_of(b);
  if (x == 0 && y < 0) fail(FailureKind::kZeroDivision, "0.0 cannot be raised to a negative power");
  if (x < 0 && std::floor(y) != y && std::isfinite(y))
    fail(FailureKind::kValue, "a negative number to a fractional power is complex");
  const double result = std::pow(x, y);
  if (std::isinf(result) && std::isfinite(x) && std::isfinite(y))
    fail(FailureKind::kOverflow, "(34, 'Numerical result out of range')");
  return Value::number(result);
}

Value numbers(BinaryOperator how, const Value& a, const Value& b) {
  const bool integers = is_any_integer(a) && is_any_integer(b);
  switch (how) {
    case BinaryOperator::kAdd:
      return integers ? integer_add(a, b) : Value::number(number_of(a) + number_of(b));
    case BinaryOperator::kSubtract:
      return integers ? integer_subtract(a, b) : Value::number(number_of(a) - number_of(b));
    case BinaryOperator::kMultiply:
      return integers ? integer_multiply(a, b) : Value::number(number_of(a) * number_of(b));
    case BinaryOperator::kDivide:
      return Value::number(number_of(a) / divisor(b, integers ? "division by zero" : "float division by zero"));
    case BinaryOperator::kFloorDivide:
      if (integers) return integer_floor_divide(a, b);
      return Value::number(floor_divide(number_of(a), divisor(b, "float floor division by zero")));
    case BinaryOperator::kModulo:
      if (integers) return integer_modulo(a, b);
      return Value::number(modulo(number_of(a), divisor(b, "float modulo")));
    case BinaryOperator::kPower:
      return power(a, b);
  }
  fail_operands(how, a, b);
}

Value repeat(const Value& sequence, const Value& times) {
  if (is_big(times)) {
    if (integer_compare(times, Value::integer(0)) > 0) fail(FailureKind::kOverflow, "cannot fit 'int' into an index");
    return repeat(sequence, Value::integer(0));
  }
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, times.as_int()));
  if (sequence.is_string()) {
    const Text& unit = sequence.text();
    Text out;
    const auto runs = unit.runs();
    if (runs.size() == 1) {
      out.append_repeated(unit.view(), count, runs[0].origin);
    } else if (!runs.empty()) {
      for (std::size_t i = 0; i < count; ++i) {
        charge_steps(runs.size());
        out.append(unit);
      }
    }
    return Value::string(std::move(out), sequence.is_markup());
  }
  const auto& unit = sequence.items();
  if (!unit.empty() && count > kMaxItems / unit.size())
    fail(FailureKind::kLimit, fmt::format("a list of more than {} items", kMaxItems));
  std::vector<Value> items;
  items.reserve(unit.size() * count);
  for (std::size_t i = 0; i < (unit.empty() ? 0 : count); ++i) items.insert(items.end(), unit.begin(), unit.end());
  return sequence.is_list() ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

bool is_sequence(const Value& value) { return value.is_string() || value.is_list() || value.is_tuple(); }

Value joined(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    if (a.is_markup() || b.is_markup()) {
      Text out = escaped(a).text();
      out.append(escaped(b).text());
      return Value::string(std::move(out), true);
    }
    Text out = a.text();
    out.append(b.text());
    return Value::string(std::move(out));
  }
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    std::vector<Value> items;
    items.reserve(a.items().size() + b.items().size());
    items.insert(items.end(), a.items().begin(), a.items().end());
    items.insert(items.end(), b.items().begin(), b.items().end());
    return a.is_list() ? Value::list(std::move(items)) : Value::tuple(std::move(items));
  }
  if (is_sequence(a))
    fail_type(fmt::format("can only concatenate {0} (not \"{1}\") to {0}", type_name(a), type_name(b)));
  fail_operands(BinaryOperator::kAdd, a, b);
}

}  // namespace

double modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((rest < 0) != (b < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

Value binary(BinaryOperator how, const Value& a, const Value& b) {
  if (how == BinaryOperator::kModulo && a.is_string())
    return Value::string(format_percent(a.text(), b, a.is_markup()), a.is_markup());
  require_defined(a);
  require_defined(b);
  if (is_any_number(a) && is_any_number(b)) return numbers(how, a, b);
  if (how == BinaryOperator::kAdd) return joined(a, b);
  if (how == BinaryOperator::kMultiply) {
    if (is_sequence(a) && is_any_integer(b)) return repeat(a, b);
    if (is_sequence(b) && is_any_integer(a)) return repeat(b, a);
    if (is_sequence(a) || is_sequence(b))
      fail_type(fmt::format("can't multiply sequence by non-int of type '{}'", type_name(is_sequence(a) ? b : a)));
  }
  fail_operands(how, a, b);
}

Value negate(const Value& value) {
  require_defined(value);
  if (value.is_float()) return Value::number(-value.as_number());
  if (is_any_integer(value)) return integer_negate(value);
  fail_type(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

Value positive(const Value& value) {
  require_defined(value);
  if (value.is_float() || is_big(value)) return value;
  if (value.is_integral()) return Value::integer(value.as_int());
  fail_type(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
}

}  // namespace hk::tokenizer::jinja
