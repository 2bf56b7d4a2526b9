// Interpreter: renders a parsed template with a context.
//
// Layer: tokenizer/jinja. One object a rendering. Statements and expressions are walked directly; a chat template runs
// once a turn, so there is nothing to gain from compiling it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/runtime.h"
#include "tokenizer/jinja/scope.h"

namespace hk::tokenizer::jinja {

class Loop;

class Interpreter : public Runtime {
 public:
  /// All must outlive the interpreter. `context` is a dict.
  Interpreter(const Program& program, const Value& context, const Clock& clock, std::size_t max_output);
  ~Interpreter() override;

  Text render();
  /// Where the rendering is, or was when it failed.
  std::uint32_t offset() const { return offset_; }

  // Runtime
  Value call(const Value& callee, Arguments& arguments) override;
  Value apply_filter(std::string_view name, const Value& input, Arguments& arguments) override;
  bool apply_test(std::string_view name, const Value& input, Arguments& arguments) override;
  const Clock& clock() const override { return clock_; }
  void adopt(std::shared_ptr<Object> object) override { adopted_.push_back(std::move(object)); }

  Value run_recursive_loop(const Statement& loop, const std::shared_ptr<Scope>& scope, const Value& items,
                           std::int64_t nesting);
  Value run_macro(const MacroSyntax& macro, const std::shared_ptr<Scope>& closure, Arguments& arguments);

 private:
  using ScopePointer = std::shared_ptr<Scope>;
  enum class Flow : std::uint8_t { kNormal, kBreak, kContinue };
  class Depth;

  // statements (interpreter.cpp)
  Flow run(const Block& block, const ScopePointer& scope);
  Flow run(const Statement& statement, const ScopePointer& scope);
  void print(const Value& value);
  void print_text(const Value& value, const char* what);
  Flow run_if(const Statement& statement, const ScopePointer& scope);
  Flow run_for(const Statement& statement, const ScopePointer& scope);
  Flow run_loop(const Statement& statement, const ScopePointer& scope, const Value& items, std::int64_t nesting);
  void run_set_block(const Statement& statement, const ScopePointer& scope);
  void run_call_block(const Statement& statement, const ScopePointer& scope);
  Flow run_filter_block(const Statement& statement, const ScopePointer& scope);
  Flow run_with(const Statement& statement, const ScopePointer& scope);
  Flow run_autoescape(const Statement& statement, const ScopePointer& scope);
  /// Runs a block into a string of its own.
  Value capture(const Block& block, const ScopePointer& scope, Flow& flow);
  void assign(const Expression& target, const Value& value, const ScopePointer& scope);
  Value make_macro(const std::shared_ptr<MacroSyntax>& syntax, const ScopePointer& scope);

  // expressions (evaluation.cpp)
  Value evaluate(const Expression& node, const ScopePointer& scope);
  Value evaluate_list(const Expression& node, const ScopePointer& scope);
  Value evaluate_dict(const Expression& node, const ScopePointer& scope);
  Value evaluate_item(const Expression& node, const ScopePointer& scope);
  Value evaluate_slice(const Expression& node, const ScopePointer& scope);
  Value evaluate_binary(const Expression& node, const ScopePointer& scope);
  Value evaluate_concat(const Expression& node, const ScopePointer& scope);
  Value evaluate_compare(const Expression& node, const ScopePointer& scope);
  Value evaluate_conditional(const Expression& node, const ScopePointer& scope);
  Value evaluate_call(const Expression& node, const ScopePointer& scope, const Value* caller);
  Value evaluate_test(const Expression& node, const ScopePointer& scope);
  /// `input` stands for the missing operand of a filter chain in a block.
  Value evaluate_filter(const Expression& node, const ScopePointer& scope, const Value* input);
  Arguments evaluate_arguments(const CallSyntax& call, const ScopePointer& scope);
  Value look_up(std::string_view name, const ScopePointer& scope);
  void at(std::uint32_t offset) { offset_ = offset; }

  const Program& program_;
  const Value& context_;
  const Clock& clock_;
  std::size_t max_output_;
  Text* out_ = nullptr;
  std::uint32_t offset_ = 0;
  std::uint32_t depth_ = 0;
  ScopePointer globals_;
  std::vector<std::shared_ptr<Object>> adopted_;
};

/// Counts nested evaluations, so that a macro that calls itself ends in a sentence and not in a crash.
class Interpreter::Depth {
 public:
  explicit Depth(Interpreter& interpreter);
  ~Depth() { --interpreter_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Interpreter& interpreter_;
};

/// The line break count before `offset` plus one, and the code point in the line, from 1.
std::pair<std::size_t, std::size_t> line_and_column(std::string_view source, std::size_t offset);

}  // namespace hk::tokenizer::jinja
