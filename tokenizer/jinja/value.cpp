// Values and dicts.
#include "tokenizer/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::size_t kSmallDict = 8;                             // up to here a linear search beats the index
constexpr std::size_t kDictEntryBytes = 2 * sizeof(Dict::Entry);  // an entry and its share of the index

std::uint32_t checked_depth(std::uint32_t depth) {
  if (depth > kMaxValueDepth)
    fail(FailureKind::kLimit, fmt::format("a value is nested more than {} levels deep", kMaxValueDepth));
  return depth;
}

std::uint32_t depth_of_items(const std::vector<Value>& items) {
  std::uint32_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return checked_depth(depth + 1);
}

int rank(const Value& value) {
  switch (value.type()) {
    case Value::Type::kNone:
      return 0;
    case Value::Type::kBool:
    case Value::Type::kInt:
    case Value::Type::kFloat:
      return 1;
    case Value::Type::kString:
      return 2;
    case Value::Type::kTuple:
      return 3;
    case Value::Type::kUndefined:
      return 4;
    case Value::Type::kObject:
      return value.object_as<BigInteger>() != nullptr ? 5 : 6;
    case Value::Type::kList:
      return 7;
    case Value::Type::kDict:
      return 8;
  }
  return 9;
}

/// -1, 0, 1 in an order that is total over keys.
int compare_keys(const Value& a, const Value& b) {
  const int rank_a = rank(a), rank_b = rank(b);
  if (rank_a != rank_b) return rank_a < rank_b ? -1 : 1;
  switch (rank_a) {
    case 1: {
      if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int() ? 1 : 0;
      const double x = a.as_number(), y = b.as_number();
      if (std::isnan(x) || std::isnan(y)) return std::isnan(x) - std::isnan(y);
      return x < y ? -1 : x > y ? 1 : 0;
    }
    case 2: {
      const int order = a.view().compare(b.view());
      return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    case 3: {
      const auto& x = a.items();
      const auto& y = b.items();
      for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
        if (const int order = compare_keys(x[i], y[i]); order != 0) return order;
      return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
    }
    case 5:
      return a.object_as<BigInteger>()->compare(*b.object_as<BigInteger>());
    case 6:
      return std::less<const void*>()(a.identity(), b.identity()) ? -1 : a.identity() != b.identity();
    default:
      return 0;
  }
}

bool key_equals(const Value& a, const Value& b) { return compare_keys(a, b) == 0; }
bool key_equals(const Value& a, std::string_view b) { return a.is_string() && a.view() == b; }

}  // namespace

String::String(Text text_, bool markup_)
    : text(std::move(text_)),
      length(count_code_points(text.view())),
      markup(markup_),
      charge(sizeof(String) + text.size()) {}

Sequence::Sequence(std::vector<Value> items_)
    : items(std::move(items_)), depth(depth_of_items(items)), charge(sizeof(Sequence) + items.size() * sizeof(Value)) {}

std::string Undefined::message() const {
  if (!hint.empty()) return hint;
  if (security) return fmt::format("access to attribute '{}' of '{}' object is unsafe", name, owner);
  if (owner.empty()) return fmt::format("'{}' is undefined", name);
  if (owner == "None") return fmt::format("'None' has no attribute '{}'", name);
  return fmt::format("'{} object' has no attribute '{}'", owner, name);
}

Value Value::string(Text text, bool markup) {
  return Value(Storage(std::in_place_index<5>, std::make_shared<const String>(std::move(text), markup)));
}
Value Value::string(std::string_view text, Origin origin) { return string(Text(std::string(text), origin)); }
Value Value::list(std::vector<Value> items) {
  return Value(Storage(std::in_place_index<6>, List{std::make_shared<const Sequence>(std::move(items))}));
}
Value Value::tuple(std::vector<Value> items) {
  return Value(Storage(std::in_place_index<7>, Tuple{std::make_shared<const Sequence>(std::move(items))}));
}
Value Value::group(Value key, Value members) {
  std::vector<Value> items;
  items.push_back(std::move(key));
  items.push_back(std::move(members));
  auto pair = std::make_shared<Sequence>(std::move(items));
  pair->is_group = true;
  return Value(Storage(std::in_place_index<7>, Tuple{std::move(pair)}));
}
Value Value::dict(Dict dict) {
  struct Node {
    explicit Node(Dict dict_) : dict(std::move(dict_)), charge(sizeof(Node) + dict.size() * kDictEntryBytes) {}
    Dict dict;
    Charge charge;
  };
  auto node = std::make_shared<const Node>(std::move(dict));
  return Value(Storage(std::in_place_index<8>, std::shared_ptr<const Dict>(node, &node->dict)));
}
Value Value::object(std::shared_ptr<Object> object) {
  return Value(Storage(std::in_place_index<9>, std::move(object)));
}
Value Value::undefined(Undefined why) {
  return Value(Storage(std::in_place_index<1>, std::make_shared<const Undefined>(std::move(why))));
}

std::uint32_t Value::depth() const {
  switch (type()) {
    case Type::kList:
    case Type::kTuple:
      return as_sequence().depth;
    case Type::kDict:
      return as_dict().depth();
    case Type::kObject:
      return as_object()->depth();
    default:
      return 0;
  }
}

const void* Value::identity() const {
  switch (type()) {
    case Type::kList:
    case Type::kTuple:
      return &as_sequence();
    case Type::kDict:
      return &as_dict();
    case Type::kObject:
      return as_object().get();
    case Type::kString:
      return &as_string();
    case Type::kUndefined:
      return &as_undefined();
    default:
      return nullptr;
  }
}

bool KeyLess::operator()(const Value& a, const Value& b) const { return compare_keys(a, b) < 0; }
bool KeyLess::operator()(const Value& a, std::string_view b) const {
  const int order = rank(a);
  return order != 2 ? order < 2 : a.view() < b;
}
bool KeyLess::operator()(std::string_view a, const Value& b) const {
  const int order = rank(b);
  return order != 2 ? 2 < order : a < b.view();
}

void require_hashable(const Value& key) {
  if (key.is_list() || key.is_dict()) fail_type(fmt::format("unhashable type: '{}'", type_name(key)));
  if (key.is_tuple())
    for (const Value& item : key.items()) require_hashable(item);
}

template <typename Key>
std::size_t Dict::position(const Key& key) const {
  if (index_.empty()) {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (key_equals(entries_[i].first, key)) return i;
    return kNotFound;
  }
  const auto found = index_.find(key);
  return found == index_.end() ? kNotFound : found->second;
}

const Value* Dict::find(const Value& key) const {
  require_hashable(key);
  const std::size_t at = position(key);
  return at == kNotFound ? nullptr : &entries_[at].second;
}

const Value* Dict::find(std::string_view key) const {
  const std::size_t at = position(key);
  return at == kNotFound ? nullptr : &entries_[at].second;
}

void Dict::set(Value key, Value value) {
  require_hashable(key);
  depth_ = checked_depth(std::max({depth_, key.depth() + 1, value.depth() + 1}));
  const std::size_t at = position(key);
  if (at != kNotFound) {
    entries_[at].second = std::move(value);
    return;
  }
  entries_.emplace_back(std::move(key), std::move(value));
  if (!index_.empty()) {
    index_.emplace(entries_.back().first, static_cast<std::uint32_t>(entries_.size() - 1));
  } else if (entries_.size() > kSmallDict) {
    for (std::size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].first, static_cast<std::uint32_t>(i));
  }
}

Object::Object(std::uint32_t depth) : depth_(checked_depth(depth)), charge_(128) {}

Text Object::repr() const { return Text(fmt::format("<{} object>", type_name())); }

Value Object::call(Runtime&, Arguments&) { fail_type(fmt::format("'{}' object is not callable", type_name())); }

}  // namespace hk::tokenizer::jinja
