// Integers of Python: 64-bit as long as they fit, BigInteger beyond.
//
// Layer: tokenizer/jinja. Tool schemas hold numbers such as 18446744073709551615, which must come out as they went in.
// Size is capped (Python itself refuses to print more than 4300 digits).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

/// Sign and magnitude; never holds a number that fits 64 bits.
class BigInteger : public Object {
 public:
  using Limbs = std::vector<std::uint32_t>;  // little-endian, no leading zero limb

  BigInteger(bool negative, Limbs limbs) : negative_(negative), limbs_(std::move(limbs)) {}

  std::string type_name() const override { return "int"; }
  Text repr() const override { return Text(to_string()); }
  std::optional<Value> attribute(std::string_view name) const override;
  int compare(const BigInteger& other) const;
  std::string to_string() const;
  double to_double() const;  ///< throws OverflowError when out of range
  bool negative() const { return negative_; }
  const Limbs& limbs() const { return limbs_; }

 private:
  bool negative_;
  Limbs limbs_;
};

bool is_big(const Value& value);
/// int, bool or BigInteger.
bool is_any_integer(const Value& value);
/// is_any_integer or float.
bool is_any_number(const Value& value);
/// As a double; throws OverflowError for integers out of range.
double number_of(const Value& value);
/// Decimal text of any integer.
std::string integer_text(const Value& value);

/// Digits (no sign, no underscores, checked by the caller) in base 2 to 36.
Value integer_from_digits(std::string_view digits, unsigned base, bool negative = false);
/// Truncates; throws for infinities and NaN as Python does.
Value integer_from_double(double value);

// Both operands are any integers.
Value integer_add(const Value& a, const Value& b);
Value integer_subtract(const Value& a, const Value& b);
Value integer_multiply(const Value& a, const Value& b);
Value integer_floor_divide(const Value& a, const Value& b);
Value integer_modulo(const Value& a, const Value& b);
Value integer_power(const Value& base, const Value& exponent);  ///< exponent >= 0
Value integer_negate(const Value& a);
int integer_compare(const Value& a, const Value& b);

}  // namespace hk::tokenizer::jinja
