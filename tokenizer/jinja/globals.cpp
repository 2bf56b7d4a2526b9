// Global functions: range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
#include <fmt/format.h>

#include <map>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/objects.h"
#include "tokenizer/jinja/operations.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;  // as the sandbox of Jinja2

Value range(Runtime&, Arguments& arguments) {
  const Binder args("range", arguments, {"start", "stop", "step"}, 1, true);
  const std::int64_t first = args.integer(0, 0), step = args.integer(2, 1);
  if (step == 0) fail(FailureKind::kValue, "range() arg 3 must not be zero");
  const RangeSpan made{args.has(1) ? first : 0, args.has(1) ? args.integer(1, 0) : first, step};
  if (made.count() > kMaxRange)
    fail(FailureKind::kOverflow,
         fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).", kMaxRange));
  return Value::object(std::make_shared<Range>(made));
}

/// dict(mapping or pairs, **named)
Dict make_dict(const char* function, Arguments& arguments) {
  if (arguments.positional.size() > 1)
    fail_type(fmt::format("{} expected at most 1 argument, got {}", function, arguments.positional.size()));
  Dict out;
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    require_defined(source);
    if (source.is_dict()) {
      out = source.as_dict();
    } else {
      const auto iterator = iterate(source);
      for (Value pair; iterator->next(pair);) {
        auto two = collect(pair);
        if (two.size() != 2)
          fail(FailureKind::kValue,
               fmt::format("dictionary update sequence element has length {}; 2 is required", two.size()));
        out.set(std::move(two[0]), std::move(two[1]));
      }
    }
  }
  for (auto& [name, value] : arguments.named) out.set(name, value);
  return out;
}

Value dict(Runtime&, Arguments& arguments) { return Value::dict(make_dict("dict", arguments)); }

Value make_namespace(Runtime& runtime, Arguments& arguments) {
  auto made = std::make_shared<Namespace>(make_dict("namespace", arguments));
  runtime.adopt(made);
  return Value::object(std::move(made));
}

class Cycler : public Object {
 public:
  explicit Cycler(Value items) : Object(items.depth() + 1), items_(std::move(items)) {}
  std::string type_name() const override { return "Cycler"; }
  std::optional<Value> attribute(std::string_view name) const override {
    const Value self = Value::object(std::const_pointer_cast<Object>(shared_from_this()));
    if (name == "current") return items_.items()[position_];
    if (name == "items") return items_;
    if (name == "pos") return Value::integer(static_cast<std::int64_t>(position_));
    if (name == "next")
      return Value::object(
          std::make_shared<BoundMethod>(self, "next", [](Runtime&, const Value& cycler, Arguments& given) {
            expect_no_arguments("next", given);
            auto* that = cycler.object_as<Cycler>();
            Value current = that->items_.items()[that->position_];
            that->position_ = (that->position_ + 1) % that->items_.items().size();
            return current;
          }));
    if (name == "reset")
      return Value::object(
          std::make_shared<BoundMethod>(self, "reset", [](Runtime&, const Value& cycler, Arguments& given) {
            expect_no_arguments("reset", given);
            cycler.object_as<Cycler>()->position_ = 0;
            return Value();
          }));
    return std::nullopt;
  }

 private:
  Value items_;
  std::size_t position_ = 0;
};

Value cycler(Runtime&, Arguments& arguments) {
  if (!arguments.named.empty()) fail_type("cycler() takes no keyword arguments");
  if (arguments.positional.empty()) fail(FailureKind::kRuntime, "at least one item has to be provided");
  return Value::object(std::make_shared<Cycler>(Value::tuple(arguments.positional)));
}

class Joiner : public Object {
 public:
  explicit Joiner(Value separator) : Object(separator.depth() + 1), separator_(std::move(separator)) {}
  std::string type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Runtime&, Arguments& arguments) override {
    expect_no_arguments("joiner", arguments);
    if (used_) return separator_;
    used_ = true;
    return Value::string("");
  }
  std::optional<Value> attribute(std::string_view name) const override {
    if (name == "sep") return separator_;
    if (name == "used") return Value::boolean(used_);
    return std::nullopt;
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value joiner(Runtime&, Arguments& arguments) {
  const Binder args("joiner", arguments, {"sep"});
  return Value::object(std::make_shared<Joiner>(args.get(0, Value::string(", "))));
}

Value lipsum(Runtime&, Arguments&) {
  fail(FailureKind::kSecurity, "lipsum() is refused: the same conversation must give the same prompt");
}

Value raise_exception(Runtime&, Arguments& arguments) {
  const Binder args("raise_exception", arguments, {"message"}, 1);
  fail(FailureKind::kRaised, std::string(to_text(args[0]).view()));
}

Value strftime_now(Runtime& runtime, Arguments& arguments) {
  const Binder args("strftime_now", arguments, {"format"}, 1);
  return Value::string(format_time(runtime.clock()(), args.text(0).view()), args.text(0).blended());
}

}  // namespace

const Value* find_global(std::string_view name) {
  static const auto table = [] {
    std::map<std::string_view, Value> all;
    const auto add = [&](const char* function_name, BuiltinFunction function) {
      all.emplace(function_name, Value::object(std::make_shared<Function>(function_name, function)));
    };
    add("range", range);
    add("dict", dict);
    add("namespace", make_namespace);
    add("cycler", cycler);
    add("joiner", joiner);
    add("lipsum", lipsum);
    add("raise_exception", raise_exception);
    add("strftime_now", strftime_now);
    return all;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace hk::tokenizer::jinja
