// Collecting string literals.
#include "tokenizer/jinja/literals.h"

#include <set>

namespace hk::tokenizer::jinja {
namespace {

class Collector {
 public:
  void block(const Block& statements) {
    for (const auto& each : statements) statement(*each);
  }
  std::vector<std::string> take() { return {found_.begin(), found_.end()}; }

 private:
  void expression(const Expression* node) {
    if (node == nullptr) return;
    if (node->kind == ExpressionKind::kConstant && node->value.is_string()) found_.emplace(node->value.view());
    for (const auto& operand : node->operands) expression(operand.get());
    for (const auto& argument : node->call.positional) expression(argument.get());
    for (const auto& argument : node->call.named) expression(argument.second.get());
    expression(node->call.spread.get());
    expression(node->call.spread_named.get());
  }

  void statement(const Statement& node) {
    for (const auto& each : node.expressions) expression(each.get());
    if (node.macro) {
      for (const auto& each : node.macro->defaults) expression(each.get());
      block(node.macro->body);
    }
    for (const auto& each : node.blocks) block(each);
  }

  std::set<std::string> found_;
};

}  // namespace

std::vector<std::string> string_literals(const Program& program) {
  Collector collector;
  collector.block(program.body);
  return collector.take();
}

}  // namespace hk::tokenizer::jinja
