// ==, <, in and truth.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/objects.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

/// Exact for every mix of a 64-bit integer and a double where long double has 64 bits of mantissa.
int order_numbers(const Value& a, const Value& b, bool& unordered) {
  unordered = false;
  if (is_any_integer(a) && is_any_integer(b)) return integer_compare(a, b);
  const auto wide = [](const Value& value) {
    return value.is_integral() ? static_cast<long double>(value.as_int()) : static_cast<long double>(number_of(value));
  };
  const long double x = wide(a), y = wide(b);
  unordered = !(x < y || x > y || x == y);
  return x < y ? -1 : x > y ? 1 : 0;
}

const char* symbol(Comparison how) {
  switch (how) {
    case Comparison::kLess:
      return "<";
    case Comparison::kLessEqual:
      return "<=";
    case Comparison::kGreater:
      return ">";
    default:
      return ">=";
  }
}

bool holds(Comparison how, int order) {
  switch (how) {
    case Comparison::kLess:
      return order < 0;
    case Comparison::kLessEqual:
      return order <= 0;
    case Comparison::kGreater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool same_or_equal(const Value& a, const Value& b) {
  return (a.identity() != nullptr && a.identity() == b.identity()) || equals(a, b);
}

/// Keys and items compare like sets, values by identity.
bool same_view(const DictView& a, const DictView& b) {
  if (&a == &b) return true;
  if (a.part() != b.part() || a.part() == DictView::Part::kValues || a.dict().size() != b.dict().size()) return false;
  for (const auto& [key, value] : a.dict().entries()) {
    const Value* other = b.dict().find(key);
    if (other == nullptr || (a.part() == DictView::Part::kItems && !same_or_equal(value, *other))) return false;
  }
  return true;
}

bool ordered(Comparison how, const Value& a, const Value& b) {
  charge_steps(1);
  require_defined(a);
  require_defined(b);
  if (is_any_number(a) && is_any_number(b)) {
    bool unordered;
    const int order = order_numbers(a, b, unordered);
    return !unordered && holds(how, order);
  }
  if (a.is_string() && b.is_string()) {
    charge_steps(std::min(a.view().size(), b.view().size()) / 64);
    return holds(how, a.view().compare(b.view()));  // UTF-8 sorts like code points
  }
  if ((a.is_list() && b.is_list()) || (a.is_tuple() && b.is_tuple())) {
    const auto& x = a.items();
    const auto& y = b.items();
    const std::size_t common = std::min(x.size(), y.size());
    for (std::size_t i = 0; i < common; ++i)
      if (!same_or_equal(x[i], y[i])) return ordered(how, x[i], y[i]);
    return holds(how, x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0);
  }
  fail_type(
      fmt::format("'{}' not supported between instances of '{}' and '{}'", symbol(how), type_name(a), type_name(b)));
}

}  // namespace

void fail_undefined(const Value& value) {
  const Undefined& why = value.as_undefined();
  fail(why.security ? FailureKind::kSecurity : FailureKind::kUndefined, why.message());
}

void require_defined(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
}

bool truthy(const Value& value) {
  switch (value.type()) {
    case Value::Type::kNone:
    case Value::Type::kUndefined:
      return false;
    case Value::Type::kBool:
      return value.as_bool();
    case Value::Type::kInt:
      return value.as_int() != 0;
    case Value::Type::kFloat:
      return value.as_number() != 0;
    case Value::Type::kString:
      return !value.view().empty();
    case Value::Type::kList:
    case Value::Type::kTuple:
      return !value.items().empty();
    case Value::Type::kDict:
      return !value.as_dict().empty();
    case Value::Type::kObject:
      return value.as_object()->length().value_or(1) != 0;
  }
  return false;
}

bool is_callable(const Value& value) { return value.is_object() && value.as_object()->callable(); }

std::optional<std::int64_t> find_length(const Value& value) {
  switch (value.type()) {
    case Value::Type::kUndefined:
      return 0;
    case Value::Type::kString:
      return static_cast<std::int64_t>(value.as_string().length);
    case Value::Type::kList:
    case Value::Type::kTuple:
      return static_cast<std::int64_t>(value.items().size());
    case Value::Type::kDict:
      return static_cast<std::int64_t>(value.as_dict().size());
    case Value::Type::kObject:
      return value.as_object()->length();
    default:
      return std::nullopt;
  }
}

std::int64_t length_of(const Value& value) {
  const auto length = find_length(value);
  if (!length) fail_type(fmt::format("object of type '{}' has no len()", type_name(value)));
  return *length;
}

bool equals(const Value& a, const Value& b) {
  charge_steps(1);
  if (is_any_number(a) && is_any_number(b)) {
    bool unordered;
    const int order = order_numbers(a, b, unordered);
    return !unordered && order == 0;
  }
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Value::Type::kNone:
    case Value::Type::kUndefined:
      return true;
    case Value::Type::kString:
      charge_steps(a.view().size() / 256);
      return a.view() == b.view();
    case Value::Type::kList:
    case Value::Type::kTuple: {
      const auto& x = a.items();
      const auto& y = b.items();
      return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), same_or_equal);
    }
    case Value::Type::kDict: {
      const Dict& x = a.as_dict();
      const Dict& y = b.as_dict();
      if (x.size() != y.size()) return false;
      for (const auto& [key, value] : x.entries()) {
        const Value* other = y.find(key);
        if (other == nullptr || !same_or_equal(value, *other)) return false;
      }
      return true;
    }
    default:
      break;
  }
  if (const auto* x = a.object_as<Range>())
    if (const auto* y = b.object_as<Range>()) return x->same_as(*y);
  if (const auto* x = a.object_as<DictView>())
    if (const auto* y = b.object_as<DictView>()) return same_view(*x, *y);
  if (const auto* x = a.object_as<Bytes>())
    if (const auto* y = b.object_as<Bytes>()) return x->bytes().view() == y->bytes().view();
  return a.identity() == b.identity();
}

bool contains(const Value& container, const Value& item) {
  switch (container.type()) {
    case Value::Type::kUndefined:
      return false;
    case Value::Type::kString:
      if (!item.is_string())
        fail_type(fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
      return find_text(container.view(), item.view()) != kNotFound;
    case Value::Type::kDict:
      return container.as_dict().find(item) != nullptr;
    case Value::Type::kList:
    case Value::Type::kTuple: {
      const auto& items = container.items();
      return std::any_of(items.begin(), items.end(), [&](const Value& each) { return same_or_equal(each, item); });
    }
    default:
      break;
  }
  if (!is_iterable(container)) fail_type(fmt::format("argument of type '{}' is not iterable", type_name(container)));
  const auto iterator = iterate(container);
  for (Value each; iterator->next(each);)
    if (same_or_equal(each, item)) return true;
  return false;
}

bool compare(Comparison how, const Value& a, const Value& b) {
  switch (how) {
    case Comparison::kEqual:
      return equals(a, b);
    case Comparison::kNotEqual:
      return !equals(a, b);
    case Comparison::kIn:
      return contains(b, a);
    case Comparison::kNotIn:
      return !contains(b, a);
    default:
      return ordered(how, a, b);
  }
}

}  // namespace hk::tokenizer::jinja
