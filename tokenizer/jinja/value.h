// Value: what a template computes with. Python's objects as far as templates can tell.
//
// Layer: tokenizer/jinja. Values are immutable and shared; only namespaces, loops, cyclers and generators carry state.
// Integers have arbitrary size in Python; here they are 64-bit and fall to BigInteger beyond. Containers know how deep
// they are nested, so that nothing that walks or frees a value can overflow the stack.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizer/jinja/meter.h"
#include "tokenizer/jinja/text.h"

namespace hk::tokenizer::jinja {

class Value;
class Dict;
class Object;
class Runtime;
struct Arguments;

inline constexpr std::uint32_t kMaxValueDepth = 256;  ///< nesting of lists, dicts and wrappers around values

/// A string with what is worth knowing about it once.
struct String {
  String(Text text_, bool markup_);
  Text text;
  std::size_t length;  ///< in code points
  bool markup;         ///< `|safe` was applied: joining escapes the other side
  Charge charge;
  std::string_view view() const { return text.view(); }
  bool single_byte() const { return length == text.size(); }
};

/// Items of a list or a tuple.
struct Sequence {
  explicit Sequence(std::vector<Value> items_);
  std::vector<Value> items;
  std::uint32_t depth;
  bool is_group = false;  ///< a tuple of groupby, with the names `grouper` and `list`
  Charge charge;
};

/// Why a value is undefined; the sentence is made when somebody needs it.
struct Undefined {
  std::string hint;       ///< a ready sentence, or empty
  std::string name;       ///< missing variable or attribute
  std::string owner;      ///< type of the value that lacks it; empty for a variable
  bool security = false;  ///< the sandbox hid it: using it is a security failure
  std::string message() const;
};

class Value {
 public:
  enum class Type : std::uint8_t { kNone, kUndefined, kBool, kInt, kFloat, kString, kList, kTuple, kDict, kObject };

  Value() = default;  ///< none
  static Value boolean(bool value) { return Value(Storage(std::in_place_index<2>, value)); }
  static Value integer(std::int64_t value) { return Value(Storage(std::in_place_index<3>, value)); }
  static Value number(double value) { return Value(Storage(std::in_place_index<4>, value)); }
  static Value string(Text text, bool markup = false);
  static Value string(std::string_view text, Origin origin = Origin::kTemplate);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value group(Value key, Value members);
  static Value dict(Dict dict);
  static Value object(std::shared_ptr<Object> object);
  static Value undefined(Undefined why);

  Type type() const { return static_cast<Type>(storage_.index()); }
  bool is_none() const { return type() == Type::kNone; }
  bool is_undefined() const { return type() == Type::kUndefined; }
  bool is_bool() const { return type() == Type::kBool; }
  bool is_int() const { return type() == Type::kInt; }
  bool is_integral() const { return is_int() || is_bool(); }
  bool is_float() const { return type() == Type::kFloat; }
  bool is_number() const { return is_integral() || is_float(); }
  bool is_string() const { return type() == Type::kString; }
  bool is_markup() const { return is_string() && as_string().markup; }
  bool is_list() const { return type() == Type::kList; }
  bool is_tuple() const { return type() == Type::kTuple; }
  bool is_dict() const { return type() == Type::kDict; }
  bool is_object() const { return type() == Type::kObject; }

  bool as_bool() const { return *std::get_if<2>(&storage_); }
  std::int64_t as_int() const { return is_bool() ? as_bool() : *std::get_if<3>(&storage_); }
  double as_number() const { return is_float() ? *std::get_if<4>(&storage_) : static_cast<double>(as_int()); }
  const String& as_string() const { return **std::get_if<5>(&storage_); }
  std::string_view view() const { return as_string().view(); }
  const Text& text() const { return as_string().text; }
  const Sequence& as_sequence() const {
    return is_list() ? *std::get_if<6>(&storage_)->items : *std::get_if<7>(&storage_)->items;
  }
  const std::vector<Value>& items() const { return as_sequence().items; }
  const Dict& as_dict() const { return **std::get_if<8>(&storage_); }
  const std::shared_ptr<Object>& as_object() const { return *std::get_if<9>(&storage_); }
  template <typename T>
  T* object_as() const {
    return is_object() ? dynamic_cast<T*>(as_object().get()) : nullptr;
  }
  const Undefined& as_undefined() const { return **std::get_if<1>(&storage_); }

  std::uint32_t depth() const;
  /// Address that tells two containers or objects apart; null for plain values.
  const void* identity() const;

 private:
  struct List {
    std::shared_ptr<const Sequence> items;
  };
  struct Tuple {
    std::shared_ptr<const Sequence> items;
  };
  using Storage =
      std::variant<std::monostate, std::shared_ptr<const Undefined>, bool, std::int64_t, double,
                   std::shared_ptr<const String>, List, Tuple, std::shared_ptr<const Dict>, std::shared_ptr<Object>>;
  explicit Value(Storage storage) : storage_(std::move(storage)) {}

  Storage storage_;
};

/// Orders values that may be keys; equal exactly when Python says so (1, 1.0 and true are one key).
struct KeyLess {
  using is_transparent = void;
  bool operator()(const Value& a, const Value& b) const;
  bool operator()(const Value& a, std::string_view b) const;
  bool operator()(std::string_view a, const Value& b) const;
};

/// Throws the TypeError of Python when `key` cannot be a key (lists, dicts, tuples of them).
void require_hashable(const Value& key);

/// Keeps insertion order; a key set again keeps its place.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const Value* find(const Value& key) const;  ///< throws for unhashable keys
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);
  void set(std::string_view key, Value value) { set(Value::string(key), std::move(value)); }
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  std::uint32_t depth() const { return depth_; }

 private:
  template <typename Key>
  std::size_t position(const Key& key) const;

  std::vector<Entry> entries_;
  std::map<Value, std::uint32_t, KeyLess> index_;  // only for dicts that are not small
  std::uint32_t depth_ = 1;
};

/// Gives values one after the other.
class Iterator {
 public:
  virtual ~Iterator() = default;
  virtual bool next(Value& out) = 0;
};

/// Everything else: functions, methods, macros, loops, ranges, generators, namespaces, views.
class Object : public std::enable_shared_from_this<Object> {
 public:
  explicit Object(std::uint32_t depth = 1);  ///< throws Failure(kLimit) when nested too deeply
  virtual ~Object() = default;

  virtual std::string type_name() const = 0;
  virtual Text repr() const;
  /// Attribute by Python's rules; nullopt when there is none.
  virtual std::optional<Value> attribute(std::string_view) const { return std::nullopt; }
  virtual bool callable() const { return false; }
  virtual Value call(Runtime& runtime, Arguments& arguments);
  virtual std::unique_ptr<Iterator> iterate() { return nullptr; }  ///< null: not iterable
  virtual std::unique_ptr<Iterator> iterate_reversed() { return nullptr; }
  virtual std::optional<std::int64_t> length() { return std::nullopt; }
  virtual std::optional<Value> item(const Value&) const { return std::nullopt; }
  virtual bool subscriptable() const { return false; }
  /// Lets go of all values held, when the rendering that adopted the object ends.
  virtual void release() {}

  std::uint32_t depth() const { return depth_; }

 private:
  std::uint32_t depth_;
  Charge charge_;
};

/// Arguments of a call as they were given.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

}  // namespace hk::tokenizer::jinja
