// Integer arithmetic beyond 64 bits: schoolbook, on magnitudes of a few hundred limbs at most.
#include "tokenizer/jinja/integer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/jinja/failure.h"

namespace hk::tokenizer::jinja {
namespace {

using Limbs = BigInteger::Limbs;
constexpr std::size_t kMaxLimbs = 448;  // 4300 decimal digits, Python's own limit for printing

struct Parts {
  bool negative = false;
  Limbs limbs;
};

void trim(Limbs& limbs) {
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
}

Parts parts_of(const Value& value) {
  if (const auto* big = value.object_as<BigInteger>()) return {big->negative(), big->limbs()};
  const std::int64_t number = value.as_int();
  auto magnitude = static_cast<std::uint64_t>(number);
  if (number < 0) magnitude = 0 - magnitude;
  Parts parts{number < 0, {static_cast<std::uint32_t>(magnitude), static_cast<std::uint32_t>(magnitude >> 32)}};
  trim(parts.limbs);
  return parts;
}

Value value_of(Parts parts) {
  trim(parts.limbs);
  if (parts.limbs.size() > kMaxLimbs)
    fail(FailureKind::kOverflow, fmt::format("integer of more than {} bits", kMaxLimbs * 32));
  if (parts.limbs.size() <= 2) {
    std::uint64_t magnitude = 0;
    for (std::size_t i = parts.limbs.size(); i-- > 0;) magnitude = magnitude << 32 | parts.limbs[i];
    constexpr std::uint64_t kMinMagnitude = std::uint64_t{1} << 63;
    if (magnitude < kMinMagnitude || (parts.negative && magnitude == kMinMagnitude))
      return Value::integer(static_cast<std::int64_t>(parts.negative ? 0 - magnitude : magnitude));
  }
  return Value::object(std::make_shared<BigInteger>(parts.negative, std::move(parts.limbs)));
}

int compare_magnitude(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = a.size(); i-- > 0;)
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  return 0;
}

Limbs add_magnitude(const Limbs& a, const Limbs& b) {
  Limbs out;
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()) || carry != 0; ++i) {
    carry += (i < a.size() ? a[i] : 0ULL) + (i < b.size() ? b[i] : 0ULL);
    out.push_back(static_cast<std::uint32_t>(carry));
    carry >>= 32;
  }
  return out;
}

/// a >= b.
Limbs subtract_magnitude(const Limbs& a, const Limbs& b) {
  Limbs out(a.size());
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t digit = static_cast<std::int64_t>(a[i]) - (i < b.size() ? b[i] : 0) + borrow;
    borrow = digit < 0 ? -1 : 0;
    out[i] = static_cast<std::uint32_t>(digit);
  }
  trim(out);
  return out;
}

Limbs multiply_magnitude(const Limbs& a, const Limbs& b) {
  Limbs out(a.size() + b.size(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.size() || carry != 0; ++j) {
      carry += out[i + j] + static_cast<std::uint64_t>(a[i]) * (j < b.size() ? b[j] : 0);
      out[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  trim(out);
  return out;
}

/// Divides in place by one limb and returns the remainder.
std::uint32_t divide_small(Limbs& limbs, std::uint32_t divisor) {
  std::uint64_t rest = 0;
  for (std::size_t i = limbs.size(); i-- > 0;) {
    rest = rest << 32 | limbs[i];
    limbs[i] = static_cast<std::uint32_t>(rest / divisor);
    rest %= divisor;
  }
  trim(limbs);
  return static_cast<std::uint32_t>(rest);
}

/// Bit by bit: slow, short, and operands are small.
std::pair<Limbs, Limbs> divide_magnitude(const Limbs& a, const Limbs& b) {
  if (b.size() == 1) {
    Limbs quotient = a;
    const std::uint32_t rest = divide_small(quotient, b[0]);
    return {quotient, rest == 0 ? Limbs{} : Limbs{rest}};
  }
  Limbs quotient(a.size(), 0), rest;
  for (std::size_t bit = a.size() * 32; bit-- > 0;) {
    rest = add_magnitude(rest, rest);
    if (a[bit / 32] >> (bit % 32) & 1) rest = add_magnitude(rest, Limbs{1});
    if (compare_magnitude(rest, b) >= 0) {
      rest = subtract_magnitude(rest, b);
      quotient[bit / 32] |= std::uint32_t{1} << (bit % 32);
    }
  }
  trim(quotient);
  return {quotient, rest};
}

Parts add_parts(const Parts& a, const Parts& b) {
  if (a.negative == b.negative) return {a.negative, add_magnitude(a.limbs, b.limbs)};
  const int order = compare_magnitude(a.limbs, b.limbs);
  if (order == 0) return {};
  return order > 0 ? Parts{a.negative, subtract_magnitude(a.limbs, b.limbs)}
                   : Parts{b.negative, subtract_magnitude(b.limbs, a.limbs)};
}

/// Quotient rounded down and the remainder with the sign of the divisor.
std::pair<Parts, Parts> floor_divide(const Parts& a, const Parts& b) {
  auto [quotient, rest] = divide_magnitude(a.limbs, b.limbs);
  charge_steps(a.limbs.size() * 32);
  Parts q{a.negative != b.negative, std::move(quotient)}, r{b.negative, std::move(rest)};
  if (a.negative != b.negative && !r.limbs.empty()) {
    q.limbs = add_magnitude(q.limbs, Limbs{1});
    r.limbs = subtract_magnitude(b.limbs, r.limbs);
  }
  return {std::move(q), std::move(r)};
}

void require_divisor(const Value& b, const char* what) {
  if (b.is_integral() && b.as_int() == 0) fail(FailureKind::kZeroDivision, what);
}

bool both_small(const Value& a, const Value& b) { return a.is_integral() && b.is_integral(); }

}  // namespace

std::optional<Value> BigInteger::attribute(std::string_view name) const {
  if (name == "real" || name == "numerator") return value_of({negative_, limbs_});
  if (name == "imag") return Value::integer(0);
  if (name == "denominator") return Value::integer(1);
  return std::nullopt;
}

int BigInteger::compare(const BigInteger& other) const {
  if (negative_ != other.negative_) return negative_ ? -1 : 1;
  const int order = compare_magnitude(limbs_, other.limbs_);
  return negative_ ? -order : order;
}

std::string BigInteger::to_string() const {
  Limbs left = limbs_;
  std::vector<std::uint32_t> groups;
  while (!left.empty()) groups.push_back(divide_small(left, 1'000'000'000));
  std::string out = negative_ ? "-" : "";
  out += fmt::format("{}", groups.back());
  for (std::size_t i = groups.size() - 1; i-- > 0;) out += fmt::format("{:09}", groups[i]);
  return out;
}

double BigInteger::to_double() const {
  // The decimal text rounds correctly through strtod.
  const double value = std::strtod(to_string().c_str(), nullptr);
  if (std::isinf(value)) fail(FailureKind::kOverflow, "int too large to convert to float");
  return value;
}

bool is_big(const Value& value) { return value.object_as<BigInteger>() != nullptr; }
bool is_any_integer(const Value& value) { return value.is_integral() || is_big(value); }
bool is_any_number(const Value& value) { return value.is_number() || is_big(value); }

double number_of(const Value& value) {
  if (const auto* big = value.object_as<BigInteger>()) return big->to_double();
  return value.as_number();
}

std::string integer_text(const Value& value) {
  if (const auto* big = value.object_as<BigInteger>()) return big->to_string();
  return fmt::format("{}", value.as_int());
}

Value integer_from_digits(std::string_view digits, unsigned base, bool negative) {
  if (digits.size() > kMaxLimbs * 32) fail(FailureKind::kValue, "integer literal is too long");
  Parts parts{negative, {}};
  for (const char digit : digits) {
    const auto value = static_cast<std::uint32_t>(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    std::uint64_t carry = value;
    for (auto& limb : parts.limbs) {
      carry += static_cast<std::uint64_t>(limb) * base;
      limb = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) parts.limbs.push_back(static_cast<std::uint32_t>(carry));
    if (parts.limbs.size() > kMaxLimbs) fail(FailureKind::kValue, "integer literal is too long");
  }
  return value_of(std::move(parts));
}

Value integer_from_double(double value) {
  if (std::isnan(value)) fail(FailureKind::kValue, "cannot convert float NaN to integer");
  if (std::isinf(value)) fail(FailureKind::kOverflow, "cannot convert float infinity to integer");
  value = std::trunc(value);
  if (std::fabs(value) < 9.2e18) return Value::integer(static_cast<std::int64_t>(value));
  const std::string digits = fmt::format("{:.0f}", std::fabs(value));
  return integer_from_digits(digits, 10, value < 0);
}

Value integer_add(const Value& a, const Value& b) {
  std::int64_t out;
  if (both_small(a, b) && !__builtin_add_overflow(a.as_int(), b.as_int(), &out)) return Value::integer(out);
  return value_of(add_parts(parts_of(a), parts_of(b)));
}

Value integer_subtract(const Value& a, const Value& b) {
  std::int64_t out;
  if (both_small(a, b) && !__builtin_sub_overflow(a.as_int(), b.as_int(), &out)) return Value::integer(out);
  Parts right = parts_of(b);
  right.negative = !right.negative;
  return value_of(add_parts(parts_of(a), right));
}

Value integer_multiply(const Value& a, const Value& b) {
  std::int64_t out;
  if (both_small(a, b) && !__builtin_mul_overflow(a.as_int(), b.as_int(), &out)) return Value::integer(out);
  const Parts x = parts_of(a), y = parts_of(b);
  return value_of({x.negative != y.negative, multiply_magnitude(x.limbs, y.limbs)});
}

Value integer_floor_divide(const Value& a, const Value& b) {
  require_divisor(b, "integer division or modulo by zero");
  if (both_small(a, b) && b.as_int() != -1) {
    const std::int64_t x = a.as_int(), y = b.as_int();
    return Value::integer(x / y - (x % y != 0 && (x < 0) != (y < 0)));
  }
  return value_of(floor_divide(parts_of(a), parts_of(b)).first);
}

Value integer_modulo(const Value& a, const Value& b) {
  require_divisor(b, "integer modulo by zero");
  if (both_small(a, b) && b.as_int() != -1) {
    const std::int64_t x = a.as_int(), y = b.as_int(), rest = x % y;
    return Value::integer(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
  }
  return value_of(floor_divide(parts_of(a), parts_of(b)).second);
}

Value integer_power(const Value& base, const Value& exponent) {
  Value result = Value::integer(1), square = base;
  if (!exponent.is_integral()) {
    if (base.is_integral() && (base.as_int() == 0 || base.as_int() == 1)) return base;
    if (base.is_integral() && base.as_int() == -1)
      return integer_modulo(exponent, Value::integer(2)).as_int() == 0 ? result : base;
    fail(FailureKind::kOverflow, fmt::format("integer of more than {} bits", kMaxLimbs * 32));
  }
  for (auto left = static_cast<std::uint64_t>(exponent.as_int()); left != 0; left >>= 1) {
    if (left & 1) result = integer_multiply(result, square);
    if (left > 1) square = integer_multiply(square, square);
  }
  return result;
}

Value integer_negate(const Value& a) { return integer_subtract(Value::integer(0), a); }

int integer_compare(const Value& a, const Value& b) {
  if (both_small(a, b)) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int();
  const Parts x = parts_of(a), y = parts_of(b);
  if (x.negative != y.negative) return x.negative ? -1 : 1;
  const int order = compare_magnitude(x.limbs, y.limbs);
  return x.negative ? -order : order;
}

}  // namespace hk::tokenizer::jinja
