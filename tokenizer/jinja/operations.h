// What the operators, subscripts and built-in questions of Python mean for Values.
//
// Layer: tokenizer/jinja. Everything throws Failure in the words of Python; places are added further up.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

enum class BinaryOperator : std::uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class Comparison : std::uint8_t { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

/// Of a list that is made from a number in the template.
inline constexpr std::size_t kMaxItems = std::size_t{1} << 22;

std::string type_name(const Value& value);  ///< as Python calls the type
/// Throws UndefinedError (or SecurityError) for an undefined value.
void require_defined(const Value& value);
[[noreturn]] void fail_undefined(const Value& value);

bool truthy(const Value& value);
bool is_callable(const Value& value);
std::int64_t length_of(const Value& value);  ///< len()
/// len() when the value has one.
std::optional<std::int64_t> find_length(const Value& value);

// comparison.cpp
bool equals(const Value& a, const Value& b);
bool compare(Comparison how, const Value& a, const Value& b);
bool contains(const Value& container, const Value& item);
/// `a < b`, as sorting asks it.
inline bool less(const Value& a, const Value& b) { return compare(Comparison::kLess, a, b); }

// arithmetic.cpp
Value binary(BinaryOperator how, const Value& a, const Value& b);
Value negate(const Value& value);
Value positive(const Value& value);
double modulo(double a, double b);  ///< sign of the divisor

// access.cpp
/// x.name: methods and attributes first, then keys; undefined when there is neither.
Value get_attribute(const Value& object, std::string_view name);
/// x[key]: keys and indices first, then (for strings) attributes.
Value get_item(const Value& object, const Value& key);
Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step);
/// Method or attribute only, as getattr() of Python; hidden ones come as undefined values that refuse.
std::optional<Value> find_attribute(const Value& object, std::string_view name);

// iteration.cpp
std::unique_ptr<Iterator> iterate(const Value& value);  ///< throws TypeError when not iterable
std::unique_ptr<Iterator> iterate_reversed(const Value& value);
bool is_iterable(const Value& value);
std::vector<Value> collect(const Value& value);  ///< list(value)
/// A generator object: lazy, can be run through once. `name` is what printing shows.
Value make_generator(std::uint32_t depth, std::function<bool(Value&)> next);
/// Character `index` of a string value as one.
Value character(const String& string, std::size_t begin, std::size_t end);

// printing.cpp
Text to_text(const Value& value);  ///< str()
Text repr(const Value& value);
void append_text(Text& out, const Value& value);
std::string float_text(double value);

// markup.cpp
Text escape_html(const Text& text);
/// The value as markup: unchanged when it is one, else its text escaped.
Value escaped(const Value& value);

}  // namespace hk::tokenizer::jinja
