// The tables of filters, tests and global functions.
//
// Layer: tokenizer/jinja. Each group of filters is one file; the search joins them.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "tokenizer/jinja/runtime.h"
#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

using FilterFunction = Value (*)(Runtime&, const Value& input, Arguments&);
using TestFunction = bool (*)(Runtime&, const Value& input, Arguments&);

struct FilterEntry {
  const char* name;
  FilterFunction function;
};
struct TestEntry {
  const char* name;
  TestFunction function;
};

std::span<const FilterEntry> text_filters();
std::span<const FilterEntry> layout_filters();
std::span<const FilterEntry> markup_filters();
std::span<const FilterEntry> value_filters();
std::span<const FilterEntry> sequence_filters();
std::span<const FilterEntry> selection_filters();

const FilterEntry* find_filter(std::string_view name);
const TestEntry* find_test(std::string_view name);
/// range, dict, namespace, cycler, joiner, lipsum, raise_exception, strftime_now; null for other names.
const Value* find_global(std::string_view name);

// --- shared by the files of filters ---

/// How filters look into items: attribute "a.b.0" or an index, with what becomes of a missing one.
class AttributeGetter {
 public:
  AttributeGetter(const Value& attribute, bool ignore_case, Value absent = {});
  Value operator()(const Value& item) const;

 private:
  std::vector<Value> parts_;
  bool ignore_case_;
  Value absent_;  // none: missing attributes stay undefined
};

/// Lower case for strings, anything else unchanged.
Value without_case(const Value& value);
/// Stable sort by keys; `reverse` keeps equal items in order, as Python does.
std::vector<Value> sorted_by(const std::vector<Value>& items, const std::function<Value(const Value&)>& key,
                             bool reverse);

}  // namespace hk::tokenizer::jinja
