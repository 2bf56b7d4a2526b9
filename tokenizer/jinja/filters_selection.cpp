// map, select, reject, selectattr, rejectattr: lazy, and silent over what is false.
#include <fmt/format.h>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

std::uint32_t depth_over(const Value& input, const Arguments& arguments) {
  std::uint32_t depth = input.depth();
  for (const Value& value : arguments.positional) depth = std::max(depth, value.depth());
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, value.depth());
  return depth + 1;
}

/// Name of a filter or test given as first argument; the rest stays in `arguments`.
std::string take_name(Arguments& arguments, const char* what) {
  if (!arguments.positional[0].is_string())
    fail(FailureKind::kRuntime, fmt::format("No {} named {}.", what, repr(arguments.positional[0]).view()));
  std::string name(arguments.positional[0].view());
  arguments.positional.erase(arguments.positional.begin());
  return name;
}

using Mapping = std::function<Value(const Value&)>;

Mapping make_mapping(Runtime& runtime, Arguments arguments) {
  if (arguments.positional.empty()) {
    Value attribute, absent;
    bool given = false;
    for (const auto& [name, value] : arguments.named) {
      if (name == "attribute")
        attribute = value, given = true;
      else if (name == "default")
        absent = value;
      else
        fail(FailureKind::kFilterArgument, fmt::format("Unexpected keyword argument '{}'", name));
    }
    if (!given) fail(FailureKind::kFilterArgument, "map requires a filter argument");
    return AttributeGetter(attribute, false, absent);
  }
  std::string name = take_name(arguments, "filter");
  return [&runtime, name = std::move(name), arguments = std::move(arguments)](const Value& item) {
    Arguments copy = arguments;
    return runtime.apply_filter(name, item, copy);
  };
}

Value map(Runtime& runtime, const Value& input, Arguments& arguments) {
  const std::uint32_t depth = depth_over(input, arguments);
  // Nothing is looked at before the first item is wanted: an unused map with a wrong filter is no error.
  return make_generator(depth, [&runtime, input, arguments, mapping = Mapping(),
                                iterator = std::shared_ptr<Iterator>()](Value& out) mutable {
    if (!iterator) {
      if (!truthy(input)) return false;
      mapping = make_mapping(runtime, arguments);
      iterator = iterate(input);
    }
    Value item;
    if (!iterator->next(item)) return false;
    out = mapping(item);
    return true;
  });
}

using Choice = std::function<bool(const Value&)>;

Choice make_choice(Runtime& runtime, Arguments arguments, bool by_attribute) {
  std::optional<AttributeGetter> getter;
  if (by_attribute) {
    if (arguments.positional.empty()) fail(FailureKind::kFilterArgument, "Missing parameter for attribute name");
    getter.emplace(arguments.positional[0], false);
    arguments.positional.erase(arguments.positional.begin());
  }
  const auto look = [getter = std::move(getter)](const Value& item) { return getter ? (*getter)(item) : item; };
  if (arguments.positional.empty()) return [look](const Value& item) { return truthy(look(item)); };
  std::string name = take_name(arguments, "test");
  return [&runtime, look, name = std::move(name), arguments = std::move(arguments)](const Value& item) {
    Arguments copy = arguments;
    return runtime.apply_test(name, look(item), copy);
  };
}

template <bool wanted, bool by_attribute>
Value choose(Runtime& runtime, const Value& input, Arguments& arguments) {
  const std::uint32_t depth = depth_over(input, arguments);
  return make_generator(depth, [&runtime, input, arguments, choice = Choice(),
                                iterator = std::shared_ptr<Iterator>()](Value& out) mutable {
    if (!iterator) {
      if (!truthy(input)) return false;
      choice = make_choice(runtime, arguments, by_attribute);
      iterator = iterate(input);
    }
    for (Value item; iterator->next(item);) {
      charge_steps(1);
      if (choice(item) != wanted) continue;
      out = std::move(item);
      return true;
    }
    return false;
  });
}

constexpr FilterEntry kFilters[] = {
    {"map", map},
    {"select", choose<true, false>},
    {"reject", choose<false, false>},
    {"selectattr", choose<true, true>},
    {"rejectattr", choose<false, true>},
};

}  // namespace

std::span<const FilterEntry> selection_filters() { return kFilters; }

}  // namespace hk::tokenizer::jinja
