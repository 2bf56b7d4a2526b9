// Methods and attributes of lists, tuples, dicts and numbers, and the search through all tables.
#include "tokenizer/jinja/methods.h"

#include <fmt/format.h>

#include <cmath>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

bool same_or_equal(const Value& a, const Value& b) {
  return (a.identity() != nullptr && a.identity() == b.identity()) || equals(a, b);
}

Value sequence_index(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("index", arguments, {"value", "start", "stop"}, 1, true);
  const auto& items = self.items();
  const auto count = static_cast<std::int64_t>(items.size());
  const auto clamp = [&](std::int64_t at) {
    if (at < 0) at = at < -count ? 0 : at + count;
    return at > count ? count : at;
  };
  const std::int64_t stop = clamp(args.integer(2, count));
  for (std::int64_t i = clamp(args.integer(1, 0)); i < stop; ++i)
    if (same_or_equal(items[static_cast<std::size_t>(i)], args[0])) return Value::integer(i);
  fail(FailureKind::kValue, self.is_list() ? fmt::format("{} is not in list", repr(args[0]).view())
                                           : std::string("tuple.index(x): x not in tuple"));
}

Value sequence_count(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("count", arguments, {"value"}, 1, true);
  std::int64_t count = 0;
  for (const Value& item : self.items()) count += same_or_equal(item, args[0]);
  return Value::integer(count);
}

Value list_copy(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("copy", arguments);
  return Value::list(self.items());
}

template <DictView::Part part>
Value dict_view(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("dict view", arguments);
  return Value::object(std::make_shared<DictView>(self, part));
}

Value dict_get(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("get", arguments, {"key", "default"}, 1, true);
  const Value* found = self.as_dict().find(args[0]);
  return found != nullptr ? *found : args.get(1);
}

Value dict_copy(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("copy", arguments);
  return Value::dict(self.as_dict());
}

Value dict_fromkeys(Runtime&, const Value&, Arguments& arguments) {
  const Binder args("fromkeys", arguments, {"iterable", "value"}, 1, true);
  Dict out;
  const auto iterator = iterate(args[0]);
  for (Value key; iterator->next(key);) out.set(std::move(key), args.get(1));
  return Value::dict(std::move(out));
}

Value bit_length(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("bit_length", arguments);
  auto magnitude = static_cast<std::uint64_t>(self.as_int());
  if (self.as_int() < 0) magnitude = 0 - magnitude;
  return Value::integer(magnitude == 0 ? 0 : 64 - __builtin_clzll(magnitude));
}

Value number_conjugate(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("conjugate", arguments);
  return positive(self);
}

Value float_is_integer(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("is_integer", arguments);
  const double value = self.as_number();
  return Value::boolean(std::isfinite(value) && std::floor(value) == value);
}

constexpr MethodEntry kListMethods[] = {
    {"append", nullptr}, {"clear", nullptr},        {"copy", list_copy}, {"count", sequence_count},
    {"extend", nullptr}, {"index", sequence_index}, {"insert", nullptr}, {"pop", nullptr},
    {"remove", nullptr}, {"reverse", nullptr},      {"sort", nullptr},
};
constexpr MethodEntry kTupleMethods[] = {{"count", sequence_count}, {"index", sequence_index}};
constexpr MethodEntry kDictMethods[] = {
    {"clear", nullptr},
    {"copy", dict_copy},
    {"fromkeys", dict_fromkeys},
    {"get", dict_get},
    {"items", dict_view<DictView::Part::kItems>},
    {"keys", dict_view<DictView::Part::kKeys>},
    {"pop", nullptr},
    {"popitem", nullptr},
    {"setdefault", nullptr},
    {"update", nullptr},
    {"values", dict_view<DictView::Part::kValues>},
};
constexpr MethodEntry kIntMethods[] = {{"bit_length", bit_length}, {"conjugate", number_conjugate}};
constexpr MethodEntry kFloatMethods[] = {{"conjugate", number_conjugate}, {"is_integer", float_is_integer}};

const MethodEntry* find_in(std::span<const MethodEntry> table, std::string_view name) {
  for (const MethodEntry& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}

std::optional<Value> number_attribute(const Value& number, std::string_view name) {
  if (name == "real") return positive(number);
  if (name == "imag") return number.is_float() ? Value::number(0) : Value::integer(0);
  if (number.is_float()) return std::nullopt;
  if (name == "numerator") return positive(number);
  if (name == "denominator") return Value::integer(1);
  return std::nullopt;
}

const MethodEntry* find_entry(const Value& object, std::string_view name) {
  switch (object.type()) {
    case Value::Type::kString:
      for (const auto table : {string_methods(), string_questions(), string_layout()})
        if (const auto* entry = find_in(table, name)) return entry;
      return nullptr;
    case Value::Type::kList:
      return find_in(kListMethods, name);
    case Value::Type::kTuple:
      return find_in(kTupleMethods, name);
    case Value::Type::kDict:
      return find_in(kDictMethods, name);
    case Value::Type::kBool:
    case Value::Type::kInt:
      return find_in(kIntMethods, name);
    case Value::Type::kFloat:
      return find_in(kFloatMethods, name);
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<Value> find_method(const Value& object, std::string_view name, const std::function<Value()>& hidden) {
  if (const MethodEntry* entry = find_entry(object, name)) {
    if (entry->method == nullptr) return hidden();
    return Value::object(std::make_shared<BoundMethod>(object, entry->name, entry->method));
  }
  if (object.is_number()) return number_attribute(object, name);
  return std::nullopt;
}

}  // namespace hk::tokenizer::jinja
