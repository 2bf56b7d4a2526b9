// The loop variable.
#include "tokenizer/jinja/loop.h"

#include <fmt/format.h>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/objects.h"

namespace hk::tokenizer::jinja {
namespace {

Value nothing(const char* hint) { return Value::undefined({.hint = hint, .name = {}, .owner = {}}); }

}  // namespace

bool Loop::has_next() {
  if (ahead_at_ < ahead_.size()) return true;
  Value item;
  if (!iterator_->next(item)) return false;
  ahead_.clear();
  ahead_at_ = 0;
  ahead_.push_back(std::move(item));
  return true;
}

bool Loop::advance() {
  Value item;
  if (ahead_at_ < ahead_.size()) {
    item = std::move(ahead_[ahead_at_++]);
  } else if (!iterator_->next(item)) {
    return false;
  }
  if (index_ >= 0) previous_ = std::move(current_);
  current_ = std::move(item);
  ++index_;
  return true;
}

std::int64_t Loop::count() {
  if (!length_) {
    ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_at_));
    ahead_at_ = 0;
    for (Value item; iterator_->next(item);) {
      charge_steps(1);
      ahead_.push_back(std::move(item));
    }
    length_ = index_ + 1 + static_cast<std::int64_t>(ahead_.size());
  }
  return *length_;
}

Text Loop::repr() const {
  auto* self = const_cast<Loop*>(this);
  return Text(fmt::format("<LoopContext {}/{}>", index_ + 1, self->count()));
}

std::optional<Value> Loop::attribute(std::string_view name) const {
  auto* self = const_cast<Loop*>(this);  // asking may look ahead
  const auto method = [&](const char* method_name, BuiltinMethod function) {
    return Value::object(std::make_shared<BoundMethod>(Value::object(self->shared_from_this()), method_name, function));
  };
  if (name == "index0") return Value::integer(index_);
  if (name == "index") return Value::integer(index_ + 1);
  if (name == "first") return Value::boolean(index_ == 0);
  if (name == "last") return Value::boolean(!self->has_next());
  if (name == "length") return Value::integer(self->count());
  if (name == "revindex") return Value::integer(self->count() - index_);
  if (name == "revindex0") return Value::integer(self->count() - index_ - 1);
  if (name == "previtem") return index_ == 0 ? nothing("there is no previous item") : *previous_;
  if (name == "nextitem") return self->has_next() ? ahead_[ahead_at_] : nothing("there is no next item");
  if (name == "depth0") return Value::integer(nesting_);
  if (name == "depth") return Value::integer(nesting_ + 1);
  if (name == "cycle")
    return method("cycle",
                  [](Runtime&, const Value& loop, Arguments& given) { return loop.object_as<Loop>()->cycle(given); });
  if (name == "changed")
    return method("changed", [](Runtime& runtime, const Value& loop, Arguments& given) {
      return loop.object_as<Loop>()->changed(runtime, given);
    });
  return std::nullopt;
}

Value Loop::cycle(const Arguments& arguments) const {
  const auto& items = arguments.positional;
  if (items.empty()) fail_type("no items for cycling given");
  return items[static_cast<std::size_t>(index_) % items.size()];
}

Value Loop::changed(Runtime& runtime, const Arguments& arguments) {
  const Value now = Value::tuple(arguments.positional);
  if (last_changed_ && equals(*last_changed_, now)) return Value::boolean(false);
  if (!last_changed_) runtime.adopt(shared_from_this());
  last_changed_ = now;
  return Value::boolean(true);
}

Value Loop::call(Runtime&, Arguments& arguments) {
  if (interpreter_ == nullptr) fail_type("The loop must have the 'recursive' marker to be called recursively.");
  if (arguments.positional.size() != 1 || !arguments.named.empty()) fail_type("loop() takes exactly one argument");
  return interpreter_->run_recursive_loop(*statement_, scope_, arguments.positional[0], nesting_ + 1);
}

std::unique_ptr<Iterator> Loop::iterate() {
  class Rest : public Iterator {
   public:
    explicit Rest(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}
    bool next(Value& out) override {
      charge_steps(1);
      if (!loop_->advance()) return false;
      out = Value::tuple({loop_->current(), Value::object(loop_)});
      return true;
    }

   private:
    std::shared_ptr<Loop> loop_;
  };
  return std::make_unique<Rest>(std::static_pointer_cast<Loop>(shared_from_this()));
}

void Loop::release() {
  last_changed_.reset();
  scope_.reset();
}

}  // namespace hk::tokenizer::jinja
