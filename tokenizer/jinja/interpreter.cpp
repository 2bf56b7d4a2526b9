// Running statements.
#include "tokenizer/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/loop.h"
#include "tokenizer/jinja/macro.h"
#include "tokenizer/jinja/objects.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::uint32_t kMaxEvaluationDepth = 1500;  // below 1 MiB of stack in a release build

/// Items of a for loop that pass its `if`.
class FilteredIterator : public Iterator {
 public:
  FilteredIterator(std::unique_ptr<Iterator> source, std::function<bool(const Value&)> keep)
      : source_(std::move(source)), keep_(std::move(keep)) {}
  bool next(Value& out) override {
    while (source_->next(out)) {
      charge_steps(1);
      if (keep_(out)) return true;
    }
    return false;
  }

 private:
  std::unique_ptr<Iterator> source_;
  std::function<bool(const Value&)> keep_;
};

}  // namespace

Interpreter::Depth::Depth(Interpreter& interpreter) : interpreter_(interpreter) {
  if (interpreter_.depth_ >= kMaxEvaluationDepth)
    fail(FailureKind::kLimit, "the template is nested or calls itself too deeply");
  ++interpreter_.depth_;
}

Interpreter::Interpreter(const Program& program, const Value& context, const Clock& clock, std::size_t max_output)
    : program_(program),
      context_(context),
      clock_(clock),
      max_output_(max_output),
      globals_(std::make_shared<Scope>(nullptr)) {}

Interpreter::~Interpreter() {
  // Namespaces and macros can hold each other in circles and chains. All of them are alive here, so emptying one frees
  // nothing that frees another.
  for (const auto& object : adopted_) object->release();
  globals_->variables.clear();
}

Text Interpreter::render() {
  Text out;
  out_ = &out;
  run(program_.body, globals_);
  return out;
}

Interpreter::Flow Interpreter::run(const Block& block, const ScopePointer& scope) {
  for (const auto& statement : block) {
    const Flow flow = run(*statement, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run(const Statement& statement, const ScopePointer& scope) {
  const Depth depth(*this);
  charge_steps(1);
  at(statement.offset);
  switch (statement.kind) {
    case StatementKind::kText:
      print_text(statement.text, "text");
      break;
    case StatementKind::kPrint:
      for (const auto& expression : statement.expressions) print(evaluate(*expression, scope));
      break;
    case StatementKind::kIf:
      return run_if(statement, scope);
    case StatementKind::kFor:
      return run_for(statement, scope);
    case StatementKind::kSet:
      assign(*statement.target, evaluate(*statement.expressions[0], scope), scope);
      break;
    case StatementKind::kSetBlock:
      run_set_block(statement, scope);
      break;
    case StatementKind::kMacro:
      scope->set(statement.name, make_macro(statement.macro, scope));
      break;
    case StatementKind::kCall:
      run_call_block(statement, scope);
      break;
    case StatementKind::kFilterBlock:
      return run_filter_block(statement, scope);
    case StatementKind::kWith:
      return run_with(statement, scope);
    case StatementKind::kAutoescape:
      return run_autoescape(statement, scope);
    case StatementKind::kScope:
      return run(statement.blocks[0], std::make_shared<Scope>(scope));
    case StatementKind::kBlock:
      return run(statement.blocks[0], std::make_shared<Scope>(statement.scoped ? scope : globals_));
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
    case StatementKind::kLoader:
      fail_type(fmt::format("'{}' is not possible: a chat template is a single file", statement.name));
  }
  return Flow::kNormal;
}

void Interpreter::print(const Value& value) {
  if (autoescape) {
    out_->append(escaped(value).text());
  } else {
    append_text(*out_, value);
  }
  charge_steps(1);
  if (out_->size() > max_output_)
    fail(FailureKind::kLimit, fmt::format("the prompt would be longer than {} bytes", max_output_));
}

/// For text that is not escaped again; anything else cannot be part of the output.
void Interpreter::print_text(const Value& value, const char* what) {
  if (!value.is_string()) fail_type(fmt::format("{} gave {} where text is needed", what, type_name(value)));
  out_->append(value.text());
  charge_steps(value.view().size() / 64);
  if (out_->size() > max_output_)
    fail(FailureKind::kLimit, fmt::format("the prompt would be longer than {} bytes", max_output_));
}

Interpreter::Flow Interpreter::run_if(const Statement& statement, const ScopePointer& scope) {
  for (std::size_t i = 0; i < statement.expressions.size(); ++i)
    if (truthy(evaluate(*statement.expressions[i], scope))) return run(statement.blocks[i], scope);
  if (statement.blocks.size() > statement.expressions.size()) return run(statement.blocks.back(), scope);
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run_for(const Statement& statement, const ScopePointer& scope) {
  return run_loop(statement, scope, evaluate(*statement.expressions[0], scope), 0);
}

Interpreter::Flow Interpreter::run_loop(const Statement& statement, const ScopePointer& scope, const Value& items,
                                        std::int64_t nesting) {
  at(statement.offset);
  auto iterator = iterate(items);
  std::optional<std::int64_t> length = find_length(items);
  if (const Expression* filter = statement.expressions[1].get()) {
    length.reset();
    iterator =
        std::make_unique<FilteredIterator>(std::move(iterator), [this, &statement, filter, scope](const Value& item) {
          const auto inner = std::make_shared<Scope>(scope);
          assign(*statement.target, item, inner);
          return truthy(evaluate(*filter, inner));
        });
  }
  const auto loop = std::make_shared<Loop>(items.depth() + 1, std::move(iterator), length, nesting);
  if (statement.recursive) loop->make_recursive(*this, statement, scope);
  bool any = false;
  for (auto body = std::make_shared<Scope>(scope); loop->advance();) {
    charge_steps(1);
    any = true;
    if (body.use_count() > 1) {  // a macro of the last round kept it
      body = std::make_shared<Scope>(scope);
    } else {
      body->variables.clear();
    }
    body->set("loop", Value::object(loop));
    assign(*statement.target, loop->current(), body);
    if (run(statement.blocks[0], body) == Flow::kBreak) break;
    at(statement.offset);
  }
  if (!any) return run(statement.blocks[1], std::make_shared<Scope>(scope));
  return Flow::kNormal;
}

Value Interpreter::run_recursive_loop(const Statement& loop, const ScopePointer& scope, const Value& items,
                                      std::int64_t nesting) {
  const Depth depth(*this);
  Text buffer;
  Text* outer = std::exchange(out_, &buffer);
  run_loop(loop, scope, items, nesting);
  out_ = outer;
  return Value::string(std::move(buffer), autoescape);
}

Value Interpreter::capture(const Block& block, const ScopePointer& scope, Flow& flow) {
  Text buffer;
  Text* outer = std::exchange(out_, &buffer);
  flow = run(block, scope);
  out_ = outer;  // after a failure nobody prints any more
  return Value::string(std::move(buffer), autoescape);
}

void Interpreter::run_set_block(const Statement& statement, const ScopePointer& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  Flow flow;
  Value value = capture(statement.blocks[0], inner, flow);
  if (const Expression* filter = statement.expressions[0].get()) value = evaluate_filter(*filter, inner, &value);
  assign(*statement.target, value, scope);
}

Interpreter::Flow Interpreter::run_filter_block(const Statement& statement, const ScopePointer& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  Flow flow;
  const Value value = capture(statement.blocks[0], inner, flow);
  if (flow != Flow::kNormal) return flow;  // left in the middle: what was captured is dropped
  print_text(evaluate_filter(*statement.expressions[0], inner, &value), "the filter block");
  return Flow::kNormal;
}

void Interpreter::run_call_block(const Statement& statement, const ScopePointer& scope) {
  const Value caller = make_macro(statement.macro, scope);
  print_text(evaluate_call(*statement.expressions[0], scope, &caller), "the call block");
}

Interpreter::Flow Interpreter::run_with(const Statement& statement, const ScopePointer& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  for (std::size_t i = 0; i < statement.targets.size(); ++i)
    assign(*statement.targets[i], evaluate(*statement.expressions[i], scope), inner);
  return run(statement.blocks[0], inner);
}

Interpreter::Flow Interpreter::run_autoescape(const Statement& statement, const ScopePointer& scope) {
  const bool outer = std::exchange(autoescape, truthy(evaluate(*statement.expressions[0], scope)));
  const Flow flow = run(statement.blocks[0], std::make_shared<Scope>(scope));
  autoescape = outer;
  return flow;
}

void Interpreter::assign(const Expression& target, const Value& value, const ScopePointer& scope) {
  switch (target.kind) {
    case ExpressionKind::kName:
      return scope->set(target.name, value);
    case ExpressionKind::kNamespaceRef: {
      at(target.offset);
      const Value holder = look_up(target.name, scope);
      auto* space = holder.object_as<Namespace>();
      if (space == nullptr) fail(FailureKind::kRuntime, "cannot assign attribute on non-namespace object");
      return space->set(target.attribute, value);
    }
    default:
      break;
  }
  at(target.offset);
  if (!is_iterable(value)) fail_type(fmt::format("cannot unpack non-iterable {} object", type_name(value)));
  const auto items = collect(value);
  const std::size_t expected = target.operands.size();
  if (items.size() > expected)
    fail(FailureKind::kValue, fmt::format("too many values to unpack (expected {})", expected));
  if (items.size() < expected)
    fail(FailureKind::kValue, fmt::format("not enough values to unpack (expected {}, got {})", expected, items.size()));
  for (std::size_t i = 0; i < expected; ++i) assign(*target.operands[i], items[i], scope);
}

Value Interpreter::make_macro(const std::shared_ptr<MacroSyntax>& syntax, const ScopePointer& scope) {
  auto macro = std::make_shared<Macro>(*this, syntax, scope);
  adopt(macro);
  return Value::object(std::move(macro));
}

std::pair<std::size_t, std::size_t> line_and_column(std::string_view source, std::size_t offset) {
  const std::string_view before = source.substr(0, std::min(offset, source.size()));
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          count_code_points(before.substr(line_start)) + 1};
}

}  // namespace hk::tokenizer::jinja
