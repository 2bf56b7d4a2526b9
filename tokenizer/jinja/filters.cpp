// Search through the filter tables and what several filters share.
#include "tokenizer/jinja/filters.h"

#include <algorithm>
#include <map>

#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/sorting.h"
#include "tokenizer/jinja/strings.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

std::vector<Value> parts_of(const Value& attribute) {
  if (attribute.is_none()) return {};
  if (!attribute.is_string()) return {attribute};
  std::vector<Value> parts;
  for (Text& part : split(attribute.text(), ".", -1)) {
    const std::string_view view = part.view();
    const bool digits = !view.empty() && view.find_first_not_of("0123456789") == std::string_view::npos;
    parts.push_back(digits ? integer_from_digits(view, 10) : Value::string(std::move(part)));
  }
  return parts;
}

}  // namespace

const FilterEntry* find_filter(std::string_view name) {
  static const auto table = [] {
    std::map<std::string_view, const FilterEntry*> all;
    for (const auto group :
         {text_filters(), layout_filters(), markup_filters(), value_filters(), sequence_filters(), selection_filters()})
      for (const FilterEntry& entry : group) all.emplace(entry.name, &entry);
    return all;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

AttributeGetter::AttributeGetter(const Value& attribute, bool ignore_case, Value absent)
    : parts_(parts_of(attribute)), ignore_case_(ignore_case), absent_(std::move(absent)) {}

Value AttributeGetter::operator()(const Value& item) const {
  Value value = item;
  for (const Value& part : parts_) {
    value = get_item(value, part);
    if (value.is_undefined() && !absent_.is_none()) value = absent_;
  }
  return ignore_case_ ? without_case(value) : value;
}

Value without_case(const Value& value) {
  return value.is_string() ? Value::string(to_lower(value.text()), value.is_markup()) : value;
}

std::vector<Value> sorted_by(const std::vector<Value>& items, const std::function<Value(const Value&)>& key,
                             bool reverse) {
  std::vector<Value> keys;
  keys.reserve(items.size());
  for (const Value& item : items) keys.push_back(key(item));
  const auto order = sorted_order(items.size(), [&](std::size_t a, std::size_t b) {
    return reverse ? less(keys[b], keys[a]) : less(keys[a], keys[b]);
  });
  std::vector<Value> out;
  out.reserve(items.size());
  for (const std::size_t index : order) out.push_back(items[index]);
  return out;
}

}  // namespace hk::tokenizer::jinja
