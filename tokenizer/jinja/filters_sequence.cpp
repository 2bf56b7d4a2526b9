// Filters over sequences as a whole: ends, joining, sorting, grouping, sums.
#include <fmt/format.h>

#include <map>
#include <set>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"

namespace hk::tokenizer::jinja {
namespace {

Value nothing(const char* hint) { return Value::undefined({.hint = hint, .name = {}, .owner = {}}); }

Value first(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("first", arguments);
  Value item;
  return iterate(input)->next(item) ? item : nothing("No first item, sequence was empty.");
}

Value last(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("last", arguments);
  Value item;
  return iterate_reversed(input)->next(item) ? item : nothing("No last item, sequence was empty.");
}

Value list_filter(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("list", arguments);
  return Value::list(collect(input));
}

Value join(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Binder args("join", arguments, {"d", "attribute"});
  const Value separator = args.get(0, Value::string(""));
  std::optional<AttributeGetter> getter;
  if (args.has(1) && !args[1].is_none()) getter.emplace(args[1], false);
  std::vector<Value> items;
  bool markup = separator.is_markup();
  const auto iterator = iterate(input);
  for (Value item; iterator->next(item);) {
    charge_steps(1);
    items.push_back(getter ? (*getter)(item) : item);
    markup = markup || items.back().is_markup();
  }
  const bool escape = runtime.autoescape && markup;
  Text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) append_text(out, escape ? escaped(separator) : separator);
    append_text(out, escape ? escaped(items[i]) : items[i]);
  }
  return Value::string(std::move(out), escape);
}

Value reverse(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("reverse", arguments);
  if (input.is_string()) return get_slice(input, Value(), Value(), Value::integer(-1));
  if (!is_iterable(input)) fail(FailureKind::kFilterArgument, "argument must be iterable");
  const bool generator = input.is_object() && !input.as_object()->iterate_reversed();
  if (generator || input.is_undefined()) {
    auto items = collect(input);
    return Value::list({items.rbegin(), items.rend()});
  }
  const std::shared_ptr<Iterator> iterator = iterate_reversed(input);
  return make_generator(input.depth() + 1, [iterator](Value& out) { return iterator->next(out); });
}

/// Key of sort: one part per comma in the attribute.
std::function<Value(const Value&)> sort_key(const Value& attribute, bool ignore_case) {
  std::vector<AttributeGetter> getters;
  if (attribute.is_string()) {
    for (Text& part : split(attribute.text(), ",", -1))
      getters.emplace_back(Value::string(std::move(part)), ignore_case);
  } else {
    getters.emplace_back(attribute, ignore_case);
  }
  if (getters.size() == 1) return [getter = getters[0]](const Value& item) { return Value::list({getter(item)}); };
  return [getters](const Value& item) {
    std::vector<Value> parts;
    for (const auto& getter : getters) parts.push_back(getter(item));
    return Value::list(std::move(parts));
  };
}

Value sort(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  return Value::list(sorted_by(collect(input), sort_key(args.get(2), !args.flag(1)), args.flag(0)));
}

Value dict_sort(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string_view by = args.has(1) ? args.text(1).view() : "key";
  if (by != "key" && by != "value")
    fail(FailureKind::kFilterArgument, "You can only sort by either \"key\" or \"value\"");
  require_defined(input);
  if (!input.is_dict())
    fail(FailureKind::kUndefined, fmt::format("'{}' object has no attribute 'items'", type_name(input)));
  std::vector<Value> pairs;
  for (const auto& [key, value] : input.as_dict().entries()) pairs.push_back(Value::tuple({key, value}));
  const std::size_t index = by == "key" ? 0 : 1;
  const bool ignore_case = !args.flag(0);
  return Value::list(sorted_by(
      std::move(pairs),
      [=](const Value& pair) { return ignore_case ? without_case(pair.items()[index]) : pair.items()[index]; },
      args.flag(2)));
}

Value unique(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("unique", arguments, {"case_sensitive", "attribute"});
  const AttributeGetter key(args.get(1), !args.flag(0));
  const std::shared_ptr<Iterator> iterator = iterate(input);
  const auto seen = std::make_shared<std::set<Value, KeyLess>>();
  return make_generator(input.depth() + 1, [=](Value& out) {
    for (Value item; iterator->next(item);) {
      charge_steps(1);
      Value item_key = key(item);
      require_hashable(item_key);
      if (!seen->insert(std::move(item_key)).second) continue;
      out = std::move(item);
      return true;
    }
    return false;
  });
}

template <bool greatest>
Value extreme(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args(greatest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const AttributeGetter key(args.get(1), !args.flag(0));
  const auto iterator = iterate(input);
  Value best, item;
  if (!iterator->next(best)) return nothing("No aggregated item, sequence was empty.");
  Value best_key = key(best);
  while (iterator->next(item)) {
    charge_steps(1);
    Value item_key = key(item);
    if (greatest ? less(best_key, item_key) : less(item_key, best_key)) {
      best = std::move(item);
      best_key = std::move(item_key);
    }
  }
  return best;
}

Value sum(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("sum", arguments, {"attribute", "start"});
  std::optional<AttributeGetter> getter;
  if (args.has(0) && !args[0].is_none()) getter.emplace(args[0], false);
  Value total = args.get(1, Value::integer(0));
  if (total.is_string()) fail_type("sum() can't sum strings [use ''.join(seq) instead]");
  const auto iterator = iterate(input);
  for (Value item; iterator->next(item);) {
    charge_steps(1);
    total = binary(BinaryOperator::kAdd, total, getter ? (*getter)(item) : item);
  }
  return total;
}

Value batch(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("batch", arguments, {"linecount", "fill_with"}, 1);
  const std::int64_t count = args.integer(0, 0);
  const Value fill = args.get(1);
  const std::shared_ptr<Iterator> iterator = iterate(input);
  // The item that did not fit the batch before, if any.
  return make_generator(input.depth() + 2, [=, held = std::optional<Value>(), done = false](Value& out) mutable {
    if (done) return false;
    std::vector<Value> items;
    if (held) items.push_back(*std::exchange(held, std::nullopt));
    for (Value item;;) {
      if (!iterator->next(item)) {
        done = true;
        break;
      }
      charge_steps(1);
      if (static_cast<std::int64_t>(items.size()) == count) {
        held = std::move(item);
        out = Value::list(std::move(items));
        return true;
      }
      items.push_back(std::move(item));
    }
    if (items.empty()) return false;
    if (!fill.is_none() && count > static_cast<std::int64_t>(kMaxItems))
      fail(FailureKind::kLimit, fmt::format("a list of more than {} items", kMaxItems));
    if (!fill.is_none())
      while (static_cast<std::int64_t>(items.size()) < count) {
        charge_steps(1);
        items.push_back(fill);
      }
    out = Value::list(std::move(items));
    return true;
  });
}

Value slice(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("slice", arguments, {"slices", "fill_with"}, 1);
  const std::int64_t slices = args.integer(0, 0);
  const Value fill = args.get(1);
  const Value all = Value::list(collect(input));
  if (slices == 0) fail(FailureKind::kZeroDivision, "integer division or modulo by zero");
  return make_generator(all.depth() + 1, [=, number = std::int64_t{0}, offset = std::size_t{0}](Value& out) mutable {
    if (number >= slices) return false;
    const std::size_t length = all.items().size(), parts = static_cast<std::size_t>(slices);
    const bool longer = static_cast<std::size_t>(number) < length % parts;
    const std::size_t size = length / parts + (longer ? 1 : 0);
    std::vector<Value> items(all.items().begin() + static_cast<std::ptrdiff_t>(offset),
                             all.items().begin() + static_cast<std::ptrdiff_t>(offset + size));
    offset += size;
    ++number;
    if (!fill.is_none() && !longer) items.push_back(fill);
    out = Value::list(std::move(items));
    return true;
  });
}

Value group_by(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool ignore_case = !args.flag(2);
  const AttributeGetter key(args[0], ignore_case, args.get(1)), shown(args[0], false, args.get(1));
  const auto items = sorted_by(collect(input), key, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < items.size();) {
    const Value group_key = key(items[begin]);
    std::size_t end = begin + 1;
    while (end < items.size() && equals(key(items[end]), group_key)) ++end;
    std::vector<Value> members(items.begin() + static_cast<std::ptrdiff_t>(begin),
                               items.begin() + static_cast<std::ptrdiff_t>(end));
    groups.push_back(Value::group(ignore_case ? shown(items[begin]) : group_key, Value::list(std::move(members))));
    begin = end;
  }
  return Value::list(std::move(groups));
}

constexpr FilterEntry kFilters[] = {
    {"first", first}, {"last", last},          {"list", list_filter}, {"join", join},          {"reverse", reverse},
    {"sort", sort},   {"dictsort", dict_sort}, {"unique", unique},    {"min", extreme<false>}, {"max", extreme<true>},
    {"sum", sum},     {"batch", batch},        {"slice", slice},      {"groupby", group_by},
};

}  // namespace

std::span<const FilterEntry> sequence_filters() { return kFilters; }

}  // namespace hk::tokenizer::jinja
