// Evaluating expressions.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/interpreter.h"

namespace hk::tokenizer::jinja {

/// Only dispatches, so that the stack frame of the recursion stays small.
Value Interpreter::evaluate(const Expression& node, const ScopePointer& scope) {
  const Depth depth(*this);
  charge_steps(1);
  at(node.offset);
  switch (node.kind) {
    case ExpressionKind::kConstant:
      return node.value;
    case ExpressionKind::kName:
      return look_up(node.name, scope);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return evaluate_list(node, scope);
    case ExpressionKind::kDict:
      return evaluate_dict(node, scope);
    case ExpressionKind::kAttribute:
    case ExpressionKind::kItem:
      return evaluate_item(node, scope);
    case ExpressionKind::kSlice:
      return evaluate_slice(node, scope);
    case ExpressionKind::kCall:
      return evaluate_call(node, scope, nullptr);
    case ExpressionKind::kFilter:
      return evaluate_filter(node, scope, nullptr);
    case ExpressionKind::kTest:
      return evaluate_test(node, scope);
    case ExpressionKind::kNegate:
    case ExpressionKind::kPositive:
    case ExpressionKind::kNot:
    case ExpressionKind::kBinary:
      return evaluate_binary(node, scope);
    case ExpressionKind::kConcat:
      return evaluate_concat(node, scope);
    case ExpressionKind::kCompare:
      return evaluate_compare(node, scope);
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
    case ExpressionKind::kConditional:
      return evaluate_conditional(node, scope);
    case ExpressionKind::kNamespaceRef:
      break;
  }
  fail(FailureKind::kRuntime, "this cannot be evaluated");
}

Value Interpreter::look_up(std::string_view name, const ScopePointer& scope) {
  if (const Value* found = scope->find(name)) return *found;
  if (const Value* found = context_.as_dict().find(name)) return *found;
  if (const Value* found = find_global(name)) return *found;
  return Value::undefined({.hint = {}, .name = std::string(name), .owner = {}});
}

Value Interpreter::evaluate_list(const Expression& node, const ScopePointer& scope) {
  std::vector<Value> items;
  items.reserve(node.operands.size());
  for (const auto& operand : node.operands) items.push_back(evaluate(*operand, scope));
  return node.kind == ExpressionKind::kList ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value Interpreter::evaluate_dict(const Expression& node, const ScopePointer& scope) {
  Dict out;
  for (std::size_t i = 0; i < node.operands.size(); i += 2) {
    Value key = evaluate(*node.operands[i], scope);
    out.set(std::move(key), evaluate(*node.operands[i + 1], scope));
  }
  return Value::dict(std::move(out));
}

Value Interpreter::evaluate_item(const Expression& node, const ScopePointer& scope) {
  const Value object = evaluate(*node.operands[0], scope);
  if (node.kind == ExpressionKind::kAttribute) {
    at(node.offset);
    return get_attribute(object, node.name);
  }
  const Value key = evaluate(*node.operands[1], scope);
  at(node.offset);
  return get_item(object, key);
}

Value Interpreter::evaluate_slice(const Expression& node, const ScopePointer& scope) {
  Value parts[4];
  for (std::size_t i = 0; i < 4; ++i)
    if (node.operands[i]) parts[i] = evaluate(*node.operands[i], scope);
  at(node.offset);
  // Jinja2 computes what is constant when it compiles, by a way that forgives: `none[1:]` is undefined.
  const bool constant = std::all_of(node.operands.begin(), node.operands.end(), [](const auto& operand) {
    return !operand || operand->kind == ExpressionKind::kConstant;
  });
  if (constant && !parts[0].is_string()) return get_item(parts[0], Value());
  return get_slice(parts[0], parts[1], parts[2], parts[3]);
}

Value Interpreter::evaluate_binary(const Expression& node, const ScopePointer& scope) {
  const Value left = evaluate(*node.operands[0], scope);
  switch (node.kind) {
    case ExpressionKind::kNot:
      return Value::boolean(!truthy(left));
    case ExpressionKind::kNegate:
      at(node.offset);
      return negate(left);
    case ExpressionKind::kPositive:
      at(node.offset);
      return positive(left);
    default:
      break;
  }
  const Value right = evaluate(*node.operands[1], scope);
  at(node.offset);
  return binary(node.binary, left, right);
}

Value Interpreter::evaluate_concat(const Expression& node, const ScopePointer& scope) {
  if (!autoescape) {
    Text out;
    for (const auto& operand : node.operands) append_text(out, evaluate(*operand, scope));
    return Value::string(std::move(out));
  }
  std::vector<Value> parts;
  bool markup = false;
  for (const auto& operand : node.operands) {
    parts.push_back(evaluate(*operand, scope));
    markup = markup || parts.back().is_markup();
  }
  Text out;
  for (const Value& part : parts) append_text(out, markup ? escaped(part) : part);
  return Value::string(std::move(out), markup);
}

Value Interpreter::evaluate_compare(const Expression& node, const ScopePointer& scope) {
  Value left = evaluate(*node.operands[0], scope);
  for (std::size_t i = 0; i < node.comparisons.size(); ++i) {
    Value right = evaluate(*node.operands[i + 1], scope);
    at(node.offset);
    if (!compare(node.comparisons[i], left, right)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Interpreter::evaluate_conditional(const Expression& node, const ScopePointer& scope) {
  Value condition = evaluate(*node.operands[0], scope);
  const bool holds = truthy(condition);
  if (node.kind == ExpressionKind::kAnd) return holds ? evaluate(*node.operands[1], scope) : condition;
  if (node.kind == ExpressionKind::kOr) return holds ? condition : evaluate(*node.operands[1], scope);
  if (holds) return evaluate(*node.operands[1], scope);
  if (node.operands[2]) return evaluate(*node.operands[2], scope);
  return Value::undefined(
      {.hint = "the inline if-expression evaluated to false and no else section was defined", .name = {}, .owner = {}});
}

Arguments Interpreter::evaluate_arguments(const CallSyntax& call, const ScopePointer& scope) {
  Arguments out;
  out.positional.reserve(call.positional.size());
  for (const auto& argument : call.positional) out.positional.push_back(evaluate(*argument, scope));
  for (const auto& [name, argument] : call.named) out.named.emplace_back(name, evaluate(*argument, scope));
  if (call.spread) {
    const Value values = evaluate(*call.spread, scope);
    if (!is_iterable(values)) fail_type(fmt::format("argument after * must be an iterable, not {}", type_name(values)));
    for (Value& value : collect(values)) out.positional.push_back(std::move(value));
  }
  if (call.spread_named) {
    const Value values = evaluate(*call.spread_named, scope);
    if (!values.is_dict()) fail_type(fmt::format("argument after ** must be a mapping, not {}", type_name(values)));
    for (const auto& [key, value] : values.as_dict().entries()) {
      if (!key.is_string()) fail_type("keywords must be strings");
      for (const auto& given : out.named)
        if (given.first == key.view())
          fail_type(fmt::format("got multiple values for keyword argument '{}'", key.view()));
      out.named.emplace_back(key.view(), value);
    }
  }
  return out;
}

Value Interpreter::evaluate_call(const Expression& node, const ScopePointer& scope, const Value* caller) {
  const Value callee = evaluate(*node.operands[0], scope);
  Arguments arguments = evaluate_arguments(node.call, scope);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  at(node.offset);
  return call(callee, arguments);
}

Value Interpreter::call(const Value& callee, Arguments& arguments) {
  require_defined(callee);
  if (!is_callable(callee)) fail_type(fmt::format("'{}' object is not callable", type_name(callee)));
  return callee.as_object()->call(*this, arguments);
}

Value Interpreter::evaluate_filter(const Expression& node, const ScopePointer& scope, const Value* input) {
  const Depth depth(*this);
  Value value;
  const Expression* operand = node.operands[0].get();
  if (operand == nullptr) {
    value = *input;
  } else if (input != nullptr && operand->kind == ExpressionKind::kFilter) {
    value = evaluate_filter(*operand, scope, input);
  } else {
    value = evaluate(*operand, scope);
  }
  Arguments arguments = evaluate_arguments(node.call, scope);
  at(node.offset);
  if (node.filter == nullptr) fail(FailureKind::kRuntime, fmt::format("No filter named '{}'.", node.name));
  return node.filter->function(*this, value, arguments);
}

Value Interpreter::evaluate_test(const Expression& node, const ScopePointer& scope) {
  const Value value = evaluate(*node.operands[0], scope);
  Arguments arguments = evaluate_arguments(node.call, scope);
  at(node.offset);
  if (node.test == nullptr) fail(FailureKind::kRuntime, fmt::format("No test named '{}'.", node.name));
  return Value::boolean(node.test->function(*this, value, arguments));
}

Value Interpreter::apply_filter(std::string_view name, const Value& input, Arguments& arguments) {
  const FilterEntry* filter = find_filter(name);
  if (filter == nullptr) fail(FailureKind::kRuntime, fmt::format("No filter named '{}'.", name));
  return filter->function(*this, input, arguments);
}

bool Interpreter::apply_test(std::string_view name, const Value& input, Arguments& arguments) {
  const TestEntry* test = find_test(name);
  if (test == nullptr) fail(FailureKind::kRuntime, fmt::format("No test named '{}'.", name));
  return test->function(*this, input, arguments);
}

}  // namespace hk::tokenizer::jinja
