// The kinds of Object that several files need to know: ranges, dict views, namespaces, functions, bound methods, bytes.
//
// Layer: tokenizer/jinja.
#pragma once

#include <string>
#include <utility>

#include "tokenizer/jinja/runtime.h"
#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

/// The numbers of a range.
struct RangeSpan {
  std::int64_t start, stop, step;
  std::int64_t count() const;
  /// Unsigned inside: the place one before the first or after the last may wrap and is never shown.
  Value at(std::int64_t index) const {
    return Value::integer(static_cast<std::int64_t>(
        static_cast<std::uint64_t>(start) + static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(step)));
  }
};

/// range(start, stop, step); never longer than the sandbox allows, which whoever makes one checks.
class Range : public Object {
 public:
  explicit Range(RangeSpan span) : span_(span) {}

  std::string type_name() const override { return "range"; }
  Text repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  std::unique_ptr<Iterator> iterate() override;
  std::unique_ptr<Iterator> iterate_reversed() override;
  std::optional<std::int64_t> length() override { return count(); }
  std::optional<Value> item(const Value& key) const override;
  bool subscriptable() const override { return true; }

  std::int64_t count() const { return span_.count(); }
  Value at(std::int64_t index) const { return span_.at(index); }
  std::int64_t step() const { return span_.step; }
  bool same_as(const Range& other) const;

 private:
  RangeSpan span_;
};

/// d.keys(), d.values(), d.items().
class DictView : public Object {
 public:
  enum class Part { kKeys, kValues, kItems };
  DictView(Value dict, Part part) : Object(dict.depth() + 1), dict_(std::move(dict)), part_(part) {}

  std::string type_name() const override;
  Text repr() const override;
  std::unique_ptr<Iterator> iterate() override;
  std::unique_ptr<Iterator> iterate_reversed() override;
  std::optional<std::int64_t> length() override;
  Part part() const { return part_; }
  const Dict& dict() const { return dict_.as_dict(); }

 private:
  Value dict_;
  Part part_;
};

/// namespace(...): the one thing a template can change.
class Namespace : public Object {
 public:
  explicit Namespace(Dict attributes) : attributes_(std::move(attributes)) {}

  std::string type_name() const override { return "Namespace"; }
  Text repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  void set(std::string_view name, Value value) { attributes_.set(name, std::move(value)); }
  void release() override { attributes_ = Dict(); }

 private:
  Dict attributes_;
};

using BuiltinFunction = Value (*)(Runtime&, Arguments&);

class Function : public Object {
 public:
  Function(const char* name, BuiltinFunction function) : name_(name), function_(function) {}
  std::string type_name() const override { return "function"; }
  Text repr() const override { return Text(std::string("<function ").append(name_).append(">")); }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override { return function_(runtime, arguments); }

 private:
  const char* name_;
  BuiltinFunction function_;
};

using BuiltinMethod = Value (*)(Runtime&, const Value& self, Arguments&);

class BoundMethod : public Object {
 public:
  BoundMethod(Value self, const char* name, BuiltinMethod method)
      : Object(self.depth() + 1), self_(std::move(self)), name_(name), method_(method) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  Text repr() const override;
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override { return method_(runtime, self_, arguments); }

 private:
  Value self_;
  const char* name_;
  BuiltinMethod method_;
};

/// What str.encode gives: good for printing, comparing and decode().
class Bytes : public Object {
 public:
  explicit Bytes(Text bytes) : bytes_(std::move(bytes)) {}
  std::string type_name() const override { return "bytes"; }
  Text repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  std::optional<std::int64_t> length() override { return static_cast<std::int64_t>(bytes_.size()); }
  const Text& bytes() const { return bytes_; }

 private:
  Text bytes_;
};

}  // namespace hk::tokenizer::jinja
