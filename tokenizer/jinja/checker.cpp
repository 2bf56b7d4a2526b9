// Checks of a whole template.
#include "tokenizer/jinja/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tokenizer/jinja/failure.h"

namespace hk::tokenizer::jinja {
namespace {

class Checker {
 public:
  void block(const Block& statements, bool soft) {
    for (const auto& each : statements) statement(*each, soft);
  }

 private:
  [[noreturn]] static void refuse(const std::string& message, std::size_t offset) {
    throw SyntaxFailure(message, offset);
  }

  void expression(const Expression* node, bool soft) {
    if (node == nullptr) return;
    if (!soft && node->kind == ExpressionKind::kFilter && node->filter == nullptr)
      refuse(fmt::format("no filter named '{}'", node->name), node->offset);
    if (!soft && node->kind == ExpressionKind::kTest && node->test == nullptr)
      refuse(fmt::format("no test named '{}'", node->name), node->offset);
    const bool inner = soft || node->kind == ExpressionKind::kConditional;
    for (const auto& operand : node->operands) expression(operand.get(), inner);
    for (const auto& argument : node->call.positional) expression(argument.get(), inner);
    for (const auto& argument : node->call.named) expression(argument.second.get(), inner);
    expression(node->call.spread.get(), inner);
    expression(node->call.spread_named.get(), inner);
  }

  void expressions(const std::vector<ExpressionPointer>& nodes, bool soft) {
    for (const auto& node : nodes) expression(node.get(), soft);
  }

  void forbid_loop_target(const Expression* target) {
    if (target == nullptr || loop_depth_names_ == 0) return;
    if (target->kind == ExpressionKind::kName && target->name == "loop")
      refuse("cannot assign to the special variable 'loop' inside a for-loop", target->offset);
    for (const auto& operand : target->operands) forbid_loop_target(operand.get());
  }

  void macro(const MacroSyntax& syntax, std::size_t offset) {
    for (const auto& node : syntax.defaults) expression(node.get(), false);
    const std::size_t first_default = syntax.parameters.size() - syntax.defaults.size();
    for (std::size_t i = 0; i < first_default; ++i)
      if (syntax.uses_caller && syntax.parameters[i] == "caller")
        refuse("the special argument 'caller' must be omitted or be given a default", offset);
    const int loops = std::exchange(loops_, 0);
    block(syntax.body, false);
    loops_ = loops;
  }

  void statement(const Statement& node, bool soft) {
    forbid_loop_target(node.target.get());
    for (const auto& target : node.targets) forbid_loop_target(target.get());
    switch (node.kind) {
      case StatementKind::kIf:
        expressions(node.expressions, true);
        for (const auto& each : node.blocks) block(each, true);
        return;
      case StatementKind::kFor: {
        expression(node.expressions[0].get(), soft);
        expression(node.expressions[1].get(), false);
        ++loop_depth_names_;
        forbid_loop_target(node.target.get());
        // A recursive loop is a function of its own for Python; its body is still inside the loop.
        ++loops_;
        block(node.blocks[0], false);
        --loops_;
        const int outer = node.recursive ? std::exchange(loops_, 0) : loops_;
        block(node.blocks[1], false);
        loops_ = outer;
        --loop_depth_names_;
        return;
      }
      case StatementKind::kMacro:
        return macro(*node.macro, node.offset);
      case StatementKind::kCall:
        expressions(node.expressions, soft);
        return macro(*node.macro, node.offset);
      case StatementKind::kScope:
      case StatementKind::kBlock: {
        const int loops = std::exchange(loops_, 0);
        block(node.blocks[0], false);
        loops_ = loops;
        return;
      }
      case StatementKind::kSetBlock:
      case StatementKind::kFilterBlock:
        expressions(node.expressions, false);
        return block(node.blocks[0], false);
      case StatementKind::kWith:
      case StatementKind::kAutoescape:
        expressions(node.expressions, soft);
        return block(node.blocks[0], false);
      case StatementKind::kBreak:
      case StatementKind::kContinue:
        if (loops_ == 0)
          refuse(node.kind == StatementKind::kBreak ? "'break' outside loop" : "'continue' not properly in loop",
                 node.offset);
        return;
      default:
        return expressions(node.expressions, soft);
    }
  }

  int loops_ = 0;             // that break could leave
  int loop_depth_names_ = 0;  // loops around, also across macros
};

/// Looks for names that are read before anything of that name is assigned, in the order of the source.
class NameFinder {
 public:
  explicit NameFinder(std::set<std::string_view> wanted) : wanted_(std::move(wanted)) {}

  void block(const Block& statements) {
    for (const auto& each : statements) statement(*each);
  }
  bool found(std::string_view name) const { return found_.count(name) != 0; }

 private:
  void expression(const Expression* node) {
    if (node == nullptr) return;
    if (node->kind == ExpressionKind::kName && wanted_.count(node->name) != 0) found_.insert(*wanted_.find(node->name));
    for (const auto& operand : node->operands) expression(operand.get());
    for (const auto& argument : node->call.positional) expression(argument.get());
    for (const auto& argument : node->call.named) expression(argument.second.get());
    expression(node->call.spread.get());
    expression(node->call.spread_named.get());
  }

  void assigned(const Expression* target) {
    if (target == nullptr) return;
    if (target->kind == ExpressionKind::kName) wanted_.erase(std::string_view(target->name));
    for (const auto& operand : target->operands) assigned(operand.get());
  }

  void statement(const Statement& node) {
    assigned(node.target.get());
    for (const auto& target : node.targets) assigned(target.get());
    for (const auto& each : node.expressions) expression(each.get());
    if (node.macro) {
      for (const auto& parameter : node.macro->parameters) wanted_.erase(std::string_view(parameter));
      for (const auto& each : node.macro->defaults) expression(each.get());
      block(node.macro->body);
    }
    if (node.kind == StatementKind::kBlock) return;
    for (const auto& each : node.blocks) block(each);
  }

  std::set<std::string_view> wanted_, found_;
};

}  // namespace

void check_program(const Program& program) { Checker().block(program.body, false); }

void find_special_names(MacroSyntax& macro) {
  NameFinder finder({"caller", "varargs", "kwargs"});
  finder.block(macro.body);
  const auto is_parameter = [&](std::string_view name) {
    return std::find(macro.parameters.begin(), macro.parameters.end(), name) != macro.parameters.end();
  };
  macro.uses_caller = finder.found("caller");
  macro.uses_varargs = finder.found("varargs") && !is_parameter("varargs");
  macro.uses_kwargs = finder.found("kwargs") && !is_parameter("kwargs");
}

}  // namespace hk::tokenizer::jinja
