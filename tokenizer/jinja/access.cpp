// Attributes, subscripts and slices, with the rules of the sandbox.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/objects.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

/// Names every Python object answers to; the sandbox hides them all.
bool is_object_dunder(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "__class__",         "__delattr__",   "__dict__",         "__dir__",     "__doc__",    "__eq__",
      "__format__",        "__ge__",        "__getattribute__", "__gt__",      "__hash__",   "__init__",
      "__init_subclass__", "__le__",        "__lt__",           "__module__",  "__ne__",     "__new__",
      "__reduce__",        "__reduce_ex__", "__repr__",         "__setattr__", "__sizeof__", "__str__",
      "__subclasshook__"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool is_container_dunder(std::string_view name) {
  static constexpr std::string_view kNames[] = {"__len__",     "__getitem__", "__iter__", "__contains__", "__add__",
                                                "__setitem__", "__delitem__", "__mul__",  "__reversed__", "__mod__"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::string owner_name(const Value& value) { return value.is_none() ? "None" : type_name(value); }

Value missing(const Value& owner, std::string_view name) {
  return Value::undefined({.hint = {}, .name = std::string(name), .owner = owner_name(owner), .security = false});
}

Value hidden(const Value& owner, std::string_view name) {
  return Value::undefined({.hint = {}, .name = std::string(name), .owner = owner_name(owner), .security = true});
}

Value missing_element(const Value& owner, const Value& key) {
  if (key.is_string()) return missing(owner, key.view());
  const std::string shown = key.is_int() ? fmt::format("{}", key.as_int()) : fmt::format("of type {}", type_name(key));
  const std::string what = owner.is_none() ? "None" : type_name(owner) + " object";
  return Value::undefined({.hint = fmt::format("{} has no element {}", what, shown), .name = {}, .owner = {}});
}

/// Key or index without attributes; nullopt when there is none or the type cannot be asked.
std::optional<Value> find_item(const Value& object, const Value& key) {
  switch (object.type()) {
    case Value::Type::kDict: {
      if (key.is_list() || key.is_dict()) return std::nullopt;
      if (key.is_string()) {
        const Value* found = object.as_dict().find(key.view());
        return found == nullptr ? std::nullopt : std::optional(*found);
      }
      try {
        const Value* found = object.as_dict().find(key);
        return found == nullptr ? std::nullopt : std::optional(*found);
      } catch (const Failure&) {  // a tuple that holds a list
        return std::nullopt;
      }
    }
    case Value::Type::kList:
    case Value::Type::kTuple: {
      if (!key.is_integral()) return std::nullopt;
      const auto& items = object.items();
      const auto count = static_cast<std::int64_t>(items.size());
      const std::int64_t index = key.as_int() < 0 ? key.as_int() + count : key.as_int();
      if (index < 0 || index >= count) return std::nullopt;
      return items[static_cast<std::size_t>(index)];
    }
    case Value::Type::kString: {
      if (!key.is_integral()) return std::nullopt;
      const String& string = object.as_string();
      const auto count = static_cast<std::int64_t>(string.length);
      const std::int64_t index = key.as_int() < 0 ? key.as_int() + count : key.as_int();
      if (index < 0 || index >= count) return std::nullopt;
      if (string.single_byte()) {
        const auto at = static_cast<std::size_t>(index);
        return character(string, at, at + 1);
      }
      charge_steps(string.view().size() / 256);
      const std::size_t begin = offset_of(string.view(), static_cast<std::size_t>(index));
      return character(string, begin, begin + decode_at(string.view(), begin).size);
    }
    case Value::Type::kObject:
      return object.as_object()->item(key);
    default:
      return std::nullopt;
  }
}

/// Ends of a slice, clamped to the length as Python does.
struct SliceBounds {
  std::int64_t start, stop, step;
  std::int64_t count() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
};

std::optional<std::int64_t> slice_index(const Value& value) {
  if (value.is_none()) return std::nullopt;
  if (value.is_integral()) return value.as_int();
  if (is_big(value)) return integer_compare(value, Value::integer(0)) < 0 ? INT64_MIN : INT64_MAX;
  fail_type("slice indices must be integers or None or have an __index__ method");
}

SliceBounds bounds_of(std::int64_t length, const Value& start, const Value& stop, const Value& step) {
  SliceBounds bounds{};
  bounds.step = std::max<std::int64_t>(slice_index(step).value_or(1), -INT64_MAX);
  if (bounds.step == 0) fail(FailureKind::kValue, "slice step cannot be zero");
  const bool backwards = bounds.step < 0;
  const auto clamp = [&](std::optional<std::int64_t> given, std::int64_t absent) {
    if (!given) return absent;
    std::int64_t index = *given;
    if (index < 0) {
      index = index < -length ? -1 : index + length;
      return index < 0 ? (backwards ? std::int64_t{-1} : std::int64_t{0}) : index;
    }
    return index >= length ? (backwards ? length - 1 : length) : index;
  };
  bounds.start = clamp(slice_index(start), backwards ? length - 1 : 0);
  bounds.stop = clamp(slice_index(stop), backwards ? -1 : length);
  return bounds;
}

Value slice_string(const String& string, const SliceBounds& bounds) {
  const std::int64_t count = bounds.count();
  const std::string_view bytes = string.view();
  if (count == 0) return Value::string(Text(), string.markup);
  const auto first = static_cast<std::size_t>(bounds.start), number = static_cast<std::size_t>(count);
  if (bounds.step == 1) {
    if (string.single_byte()) return Value::string(string.text.slice(first, first + number), string.markup);
    const std::size_t begin = offset_of(bytes, first);
    return Value::string(string.text.slice(begin, offset_of(bytes, number, begin)), string.markup);
  }
  std::vector<std::size_t> starts;  // byte offset of every code point
  starts.reserve(string.length + 1);
  for (std::size_t at = 0; at < bytes.size(); at += decode_at(bytes, at).size) starts.push_back(at);
  starts.push_back(bytes.size());
  Text out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(bounds.start + i * bounds.step);
    out.append(string.text, starts[at], starts[at + 1]);
  }
  return Value::string(std::move(out), string.markup);
}

}  // namespace

std::optional<Value> find_attribute(const Value& object, std::string_view name) {
  if (name.substr(0, 2) == "__") {
    if (is_object_dunder(name) || (is_container_dunder(name) &&
                                   (object.is_string() || object.is_list() || object.is_tuple() || object.is_dict())))
      return hidden(object, name);
    return std::nullopt;
  }
  if (object.is_object()) return object.as_object()->attribute(name);
  if (object.is_tuple() && object.as_sequence().is_group) {
    if (name == "grouper") return object.items()[0];
    if (name == "list") return object.items()[1];
  }
  return find_method(object, name, [&] { return hidden(object, name); });
}

Value get_attribute(const Value& object, std::string_view name) {
  require_defined(object);
  if (auto found = find_attribute(object, name)) return *found;
  if (object.is_dict())
    if (const Value* found = object.as_dict().find(name)) return *found;
  return missing(object, name);
}

Value get_item(const Value& object, const Value& key) {
  require_defined(object);
  if (auto found = find_item(object, key)) return *found;
  if (key.is_string())
    if (auto found = find_attribute(object, key.view())) return *found;
  return missing_element(object, key);
}

Value get_slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  require_defined(object);
  if (object.is_string())
    return slice_string(object.as_string(),
                        bounds_of(static_cast<std::int64_t>(object.as_string().length), start, stop, step));
  if (object.is_list() || object.is_tuple()) {
    const auto& items = object.items();
    const SliceBounds bounds = bounds_of(static_cast<std::int64_t>(items.size()), start, stop, step);
    std::vector<Value> out;
    const std::int64_t count = bounds.count();
    out.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      out.push_back(items[static_cast<std::size_t>(bounds.start + i * bounds.step)]);
    return object.is_list() ? Value::list(std::move(out)) : Value::tuple(std::move(out));
  }
  if (const auto* range = object.object_as<Range>()) {
    const SliceBounds bounds = bounds_of(range->count(), start, stop, step);
    std::int64_t step_size;
    if (__builtin_mul_overflow(range->step(), bounds.step, &step_size))
      step_size = (range->step() < 0) == (bounds.step < 0) ? INT64_MAX : -INT64_MAX;
    return Value::object(std::make_shared<Range>(
        RangeSpan{range->at(bounds.start).as_int(), range->at(bounds.stop).as_int(), step_size}));
  }
  if (object.is_dict()) fail_type("unhashable type: 'slice'");
  fail_type(fmt::format("'{}' object is not subscriptable", type_name(object)));
}

}  // namespace hk::tokenizer::jinja
