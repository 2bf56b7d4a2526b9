// Running through values: strings by code point, dicts by key, generators once.
#include <fmt/format.h>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

class EmptyIterator : public Iterator {
 public:
  bool next(Value&) override { return false; }
};

class SequenceIterator : public Iterator {
 public:
  SequenceIterator(Value sequence, bool reversed) : sequence_(std::move(sequence)), reversed_(reversed) {}
  bool next(Value& out) override {
    const auto& items = sequence_.items();
    if (index_ >= items.size()) return false;
    out = items[reversed_ ? items.size() - 1 - index_ : index_];
    ++index_;
    return true;
  }

 private:
  Value sequence_;
  bool reversed_;
  std::size_t index_ = 0;
};

class StringIterator : public Iterator {
 public:
  StringIterator(Value string, bool reversed)
      : string_(std::move(string)), reversed_(reversed), at_(reversed ? string_.view().size() : 0) {}
  bool next(Value& out) override {
    const std::string_view bytes = string_.view();
    if (reversed_) {
      if (at_ == 0) return false;
      const std::size_t begin = previous_start(bytes, at_);
      out = character(string_.as_string(), begin, at_);
      at_ = begin;
      return true;
    }
    if (at_ >= bytes.size()) return false;
    const std::size_t end = at_ + decode_at(bytes, at_).size;
    out = character(string_.as_string(), at_, end);
    at_ = end;
    return true;
  }

 private:
  Value string_;
  bool reversed_;
  std::size_t at_;
};

class KeyIterator : public Iterator {
 public:
  KeyIterator(Value dict, bool reversed) : dict_(std::move(dict)), reversed_(reversed) {}
  bool next(Value& out) override {
    const auto& entries = dict_.as_dict().entries();
    if (index_ >= entries.size()) return false;
    out = entries[reversed_ ? entries.size() - 1 - index_ : index_].first;
    ++index_;
    return true;
  }

 private:
  Value dict_;
  bool reversed_;
  std::size_t index_ = 0;
};

class Generator : public Object {
 public:
  Generator(std::uint32_t depth, std::function<bool(Value&)> next) : Object(depth), next_(std::move(next)) {}
  std::string type_name() const override { return "generator"; }
  Text repr() const override { return Text("<generator object>"); }
  std::unique_ptr<Iterator> iterate() override {
    return std::make_unique<Run>(std::static_pointer_cast<Generator>(shared_from_this()));
  }

 private:
  class Run : public Iterator {
   public:
    explicit Run(std::shared_ptr<Generator> generator) : generator_(std::move(generator)) {}
    bool next(Value& out) override {
      if (generator_->done_) return false;
      charge_steps(1);
      if (generator_->next_(out)) return true;
      generator_->done_ = true;
      return false;
    }

   private:
    std::shared_ptr<Generator> generator_;
  };

  std::function<bool(Value&)> next_;
  bool done_ = false;
};

std::unique_ptr<Iterator> find_iterator(const Value& value, bool reversed) {
  switch (value.type()) {
    case Value::Type::kUndefined:
      return std::make_unique<EmptyIterator>();
    case Value::Type::kString:
      return std::make_unique<StringIterator>(value, reversed);
    case Value::Type::kList:
    case Value::Type::kTuple:
      return std::make_unique<SequenceIterator>(value, reversed);
    case Value::Type::kDict:
      return std::make_unique<KeyIterator>(value, reversed);
    case Value::Type::kObject:
      return reversed ? value.as_object()->iterate_reversed() : value.as_object()->iterate();
    default:
      return nullptr;
  }
}

}  // namespace

std::unique_ptr<Iterator> iterate(const Value& value) {
  auto iterator = find_iterator(value, false);
  if (!iterator) fail_type(fmt::format("'{}' object is not iterable", type_name(value)));
  return iterator;
}

std::unique_ptr<Iterator> iterate_reversed(const Value& value) {
  auto iterator = find_iterator(value, true);
  if (!iterator) fail_type(fmt::format("'{}' object is not reversible", type_name(value)));
  return iterator;
}

bool is_iterable(const Value& value) { return find_iterator(value, false) != nullptr; }

std::vector<Value> collect(const Value& value) {
  if (value.is_list() || value.is_tuple()) return value.items();
  std::vector<Value> items;
  const auto iterator = iterate(value);
  for (Value item; iterator->next(item);) {
    charge_steps(1);
    items.push_back(std::move(item));
  }
  return items;
}

Value make_generator(std::uint32_t depth, std::function<bool(Value&)> next) {
  return Value::object(std::make_shared<Generator>(depth, std::move(next)));
}

Value character(const String& string, std::size_t begin, std::size_t end) {
  return Value::string(string.text.slice(begin, end), string.markup);
}

}  // namespace hk::tokenizer::jinja
