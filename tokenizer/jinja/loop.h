// Loop: the `loop` variable, which is also what drives a for statement.
//
// Layer: tokenizer/jinja. Looks one item ahead only when somebody asks (last, nextitem) and counts the rest only for
// length.
#pragma once

#include <memory>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/runtime.h"
#include "tokenizer/jinja/scope.h"

namespace hk::tokenizer::jinja {

class Interpreter;

class Loop : public Object {
 public:
  /// `scope` is the one around the loop, only needed for recursive loops.
  Loop(std::uint32_t depth, std::unique_ptr<Iterator> iterator, std::optional<std::int64_t> known_length,
       std::int64_t nesting)
      : Object(depth), iterator_(std::move(iterator)), length_(known_length), nesting_(nesting) {}

  void make_recursive(Interpreter& interpreter, const Statement& statement, std::shared_ptr<Scope> scope) {
    interpreter_ = &interpreter;
    statement_ = &statement;
    scope_ = std::move(scope);
  }

  /// Steps to the next item; false at the end.
  bool advance();
  const Value& current() const { return current_; }

  std::string type_name() const override { return "LoopContext"; }
  Text repr() const override;
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override;
  std::optional<std::int64_t> length() override { return count(); }
  std::unique_ptr<Iterator> iterate() override;
  void release() override;

 private:
  bool has_next();
  std::int64_t count();
  Value cycle(const Arguments& arguments) const;
  Value changed(Runtime& runtime, const Arguments& arguments);

  std::unique_ptr<Iterator> iterator_;
  std::optional<std::int64_t> length_;
  std::int64_t nesting_;
  std::int64_t index_ = -1;
  Value current_;
  std::optional<Value> previous_;
  std::vector<Value> ahead_;  // items fetched before their turn
  std::size_t ahead_at_ = 0;
  std::optional<Value> last_changed_;
  Interpreter* interpreter_ = nullptr;
  const Statement* statement_ = nullptr;
  std::shared_ptr<Scope> scope_;
};

}  // namespace hk::tokenizer::jinja
