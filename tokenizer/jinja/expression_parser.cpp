// Parsing expressions.
#include "tokenizer/jinja/expression_parser.h"

#include <optional>

#include "tokenizer/jinja/filters.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::uint32_t kMaxDescent = 120;  // of nested brackets and conditionals; each takes a dozen stack frames

std::optional<Comparison> comparison_of(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return Comparison::kEqual;
  if (token.text == "!=") return Comparison::kNotEqual;
  if (token.text == "<") return Comparison::kLess;
  if (token.text == "<=") return Comparison::kLessEqual;
  if (token.text == ">") return Comparison::kGreater;
  if (token.text == ">=") return Comparison::kGreaterEqual;
  return std::nullopt;
}

}  // namespace

ExpressionParser::Descent::Descent(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.descent_ > kMaxDescent) {
    --parser_.descent_;
    parser_.tokens_.refuse("the expression is nested too deeply");
  }
}

ExpressionPointer ExpressionParser::make(ExpressionKind kind, std::uint32_t offset) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->offset = offset;
  return node;
}

void ExpressionParser::measure(Expression& node, const Expression& child) const {
  node.depth = std::max(node.depth, child.depth + 1);
  if (node.depth > kMaxSyntaxDepth) tokens_.refuse("the expression is nested too deeply");
}

ExpressionPointer ExpressionParser::with(ExpressionPointer node, ExpressionPointer operand) const {
  if (operand) measure(*node, *operand);
  node->operands.push_back(std::move(operand));
  return node;
}

void ExpressionParser::measure_call(Expression& node) const {
  for (const auto& argument : node.call.positional) measure(node, *argument);
  for (const auto& [name, argument] : node.call.named) measure(node, *argument);
  if (node.call.spread) measure(node, *node.call.spread);
  if (node.call.spread_named) measure(node, *node.call.spread_named);
}

ExpressionPointer ExpressionParser::expression(bool with_conditional) {
  const Descent descent(*this);
  if (!with_conditional) return disjunction();
  const std::uint32_t offset = tokens_.offset();
  ExpressionPointer node = disjunction();
  while (tokens_.skip_name("if")) {
    auto conditional = with(make(ExpressionKind::kConditional, offset), disjunction());
    conditional = with(std::move(conditional), std::move(node));
    node = with(std::move(conditional), tokens_.skip_name("else") ? expression() : nullptr);
  }
  return node;
}

ExpressionPointer ExpressionParser::disjunction() {
  const std::uint32_t offset = tokens_.offset();
  ExpressionPointer left = conjunction();
  while (tokens_.skip_name("or")) {
    auto node = with(make(ExpressionKind::kOr, offset), std::move(left));
    left = with(std::move(node), conjunction());
  }
  return left;
}

ExpressionPointer ExpressionParser::conjunction() {
  const std::uint32_t offset = tokens_.offset();
  ExpressionPointer left = negation();
  while (tokens_.skip_name("and")) {
    auto node = with(make(ExpressionKind::kAnd, offset), std::move(left));
    left = with(std::move(node), negation());
  }
  return left;
}

ExpressionPointer ExpressionParser::negation() {
  if (!tokens_.is_name("not")) return comparison();
  const Descent descent(*this);
  const std::uint32_t offset = tokens_.offset();
  tokens_.advance();
  return with(make(ExpressionKind::kNot, offset), negation());
}

ExpressionPointer ExpressionParser::comparison() {
  const std::uint32_t offset = tokens_.offset();
  ExpressionPointer first = sum();
  ExpressionPointer node;
  for (;;) {
    std::optional<Comparison> how = comparison_of(tokens_.current());
    if (!how && tokens_.is_name("in")) how = Comparison::kIn;
    if (!how && tokens_.is_name("not") && tokens_.ahead().kind == TokenKind::kName && tokens_.ahead().text == "in") {
      tokens_.advance();
      how = Comparison::kNotIn;
    }
    if (!how) break;
    tokens_.advance();
    if (!node) node = with(make(ExpressionKind::kCompare, offset), std::move(first));
    node->comparisons.push_back(*how);
    node = with(std::move(node), sum());
  }
  return node ? std::move(node) : std::move(first);
}

ExpressionPointer ExpressionParser::sum() {
  ExpressionPointer left = concatenation();
  for (;;) {
    const std::uint32_t offset = tokens_.offset();
    const bool plus = tokens_.is_operator("+");
    if (!plus && !tokens_.is_operator("-")) return left;
    tokens_.advance();
    auto node = with(make(ExpressionKind::kBinary, offset), std::move(left));
    node->binary = plus ? BinaryOperator::kAdd : BinaryOperator::kSubtract;
    left = with(std::move(node), concatenation());
  }
}

ExpressionPointer ExpressionParser::concatenation() {
  const std::uint32_t offset = tokens_.offset();
  ExpressionPointer first = product();
  if (!tokens_.is_operator("~")) return first;
  auto node = with(make(ExpressionKind::kConcat, offset), std::move(first));
  while (tokens_.skip_operator("~")) node = with(std::move(node), product());
  return node;
}

ExpressionPointer ExpressionParser::product() {
  ExpressionPointer left = power();
  for (;;) {
    const std::uint32_t offset = tokens_.offset();
    BinaryOperator how;
    if (tokens_.is_operator("*"))
      how = BinaryOperator::kMultiply;
    else if (tokens_.is_operator("/"))
      how = BinaryOperator::kDivide;
    else if (tokens_.is_operator("//"))
      how = BinaryOperator::kFloorDivide;
    else if (tokens_.is_operator("%"))
      how = BinaryOperator::kModulo;
    else
      return left;
    tokens_.advance();
    auto node = with(make(ExpressionKind::kBinary, offset), std::move(left));
    node->binary = how;
    left = with(std::move(node), power());
  }
}

ExpressionPointer ExpressionParser::power() {
  ExpressionPointer left = unary(true);
  for (;;) {
    const std::uint32_t offset = tokens_.offset();
    if (!tokens_.skip_operator("**")) return left;
    auto node = with(make(ExpressionKind::kBinary, offset), std::move(left));
    node->binary = BinaryOperator::kPower;
    left = with(std::move(node), unary(true));
  }
}

ExpressionPointer ExpressionParser::unary(bool with_filters) {
  const std::uint32_t offset = tokens_.offset();
  ExpressionPointer node;
  if (tokens_.is_operator("-") || tokens_.is_operator("+")) {
    const Descent descent(*this);
    const auto kind = tokens_.advance().text == "-" ? ExpressionKind::kNegate : ExpressionKind::kPositive;
    node = with(make(kind, offset), unary(false));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPointer ExpressionParser::primary() {
  const std::uint32_t offset = tokens_.offset();
  const Token& token = tokens_.current();
  switch (token.kind) {
    case TokenKind::kName: {
      const std::string name = tokens_.advance().text;
      auto node = make(ExpressionKind::kConstant, offset);
      if (name == "true" || name == "True")
        node->value = Value::boolean(true);
      else if (name == "false" || name == "False")
        node->value = Value::boolean(false);
      else if (name != "none" && name != "None")
        node->kind = ExpressionKind::kName;
      node->name = name;
      return node;
    }
    case TokenKind::kString: {
      std::string text;
      while (tokens_.is(TokenKind::kString)) text += tokens_.advance().text;
      auto node = make(ExpressionKind::kConstant, offset);
      node->value = Value::string(text);
      return node;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat: {
      auto node = make(ExpressionKind::kConstant, offset);
      node->value = tokens_.advance().number;
      return node;
    }
    default:
      break;
  }
  if (tokens_.skip_operator("(")) {
    TupleRules rules;
    rules.parenthesized = true;
    auto node = tuple(rules);
    tokens_.expect_operator(")");
    return node;
  }
  if (tokens_.is_operator("[")) return list();
  if (tokens_.is_operator("{")) return dict();
  tokens_.refuse(fmt::format("unexpected {}", describe(token)));
}

ExpressionPointer ExpressionParser::tuple(const TupleRules& rules) {
  const std::uint32_t offset = tokens_.offset();
  const auto at_end = [&] {
    return tokens_.is(TokenKind::kVariableEnd) || tokens_.is(TokenKind::kBlockEnd) || tokens_.is_operator(")");
  };
  auto node = make(ExpressionKind::kTuple, offset);
  bool is_tuple = false;
  for (;;) {
    if (!node->operands.empty()) tokens_.expect_operator(",");
    if (at_end()) break;
    node = with(std::move(node), rules.simplified ? primary() : expression(rules.with_conditional));
    if (!tokens_.is_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return node;
  if (!node->operands.empty()) return std::move(node->operands[0]);
  if (!rules.parenthesized) tokens_.refuse(fmt::format("expected an expression, got {}", describe(tokens_.current())));
  return node;
}

ExpressionPointer ExpressionParser::list() {
  auto node = make(ExpressionKind::kList, tokens_.offset());
  tokens_.expect_operator("[");
  while (!tokens_.is_operator("]")) {
    if (!node->operands.empty()) {
      tokens_.expect_operator(",");
      if (tokens_.is_operator("]")) break;
    }
    node = with(std::move(node), expression());
  }
  tokens_.expect_operator("]");
  return node;
}

ExpressionPointer ExpressionParser::dict() {
  auto node = make(ExpressionKind::kDict, tokens_.offset());
  tokens_.expect_operator("{");
  while (!tokens_.is_operator("}")) {
    if (!node->operands.empty()) {
      tokens_.expect_operator(",");
      if (tokens_.is_operator("}")) break;
    }
    node = with(std::move(node), expression());
    tokens_.expect_operator(":");
    node = with(std::move(node), expression());
  }
  tokens_.expect_operator("}");
  return node;
}

ExpressionPointer ExpressionParser::postfix(ExpressionPointer node) {
  for (;;) {
    if (tokens_.is_operator(".") || tokens_.is_operator("["))
      node = subscript(std::move(node));
    else if (tokens_.is_operator("("))
      node = call(std::move(node));
    else
      return node;
  }
}

ExpressionPointer ExpressionParser::filters_and_tests(ExpressionPointer node) {
  for (;;) {
    if (tokens_.is_operator("|"))
      node = filters(std::move(node));
    else if (tokens_.is_name("is"))
      node = test(std::move(node));
    else if (tokens_.is_operator("("))
      node = call(std::move(node));
    else
      return node;
  }
}

ExpressionPointer ExpressionParser::subscript(ExpressionPointer node) {
  const std::uint32_t offset = tokens_.offset();
  if (tokens_.skip_operator(".")) {
    if (tokens_.is(TokenKind::kName)) {
      auto attribute = with(make(ExpressionKind::kAttribute, offset), std::move(node));
      attribute->name = tokens_.advance().text;
      return attribute;
    }
    if (!tokens_.is(TokenKind::kInteger)) tokens_.unexpected("a name or a number after '.'");
    auto item = with(make(ExpressionKind::kItem, offset), std::move(node));
    auto index = make(ExpressionKind::kConstant, tokens_.offset());
    index->value = tokens_.advance().number;
    return with(std::move(item), std::move(index));
  }
  tokens_.expect_operator("[");
  auto keys = make(ExpressionKind::kTuple, offset);
  while (!tokens_.is_operator("]")) {
    if (!keys->operands.empty()) tokens_.expect_operator(",");
    keys = with(std::move(keys), subscript_part());
  }
  tokens_.expect_operator("]");
  if (keys->operands.size() != 1) {
    for (const auto& key : keys->operands)
      if (key->kind == ExpressionKind::kSlice && key->operands[0] == nullptr)
        tokens_.refuse("a slice cannot stand in a list of keys");
    auto item = with(make(ExpressionKind::kItem, offset), std::move(node));
    return with(std::move(item), std::move(keys));
  }
  ExpressionPointer key = std::move(keys->operands[0]);
  if (key->kind != ExpressionKind::kSlice || key->operands[0] != nullptr) {
    auto item = with(make(ExpressionKind::kItem, offset), std::move(node));
    return with(std::move(item), std::move(key));
  }
  measure(*key, *node);
  key->offset = offset;
  key->operands[0] = std::move(node);
  return key;
}

/// A key, or a slice whose first operand, the value to cut, is still missing.
ExpressionPointer ExpressionParser::subscript_part() {
  const std::uint32_t offset = tokens_.offset();
  ExpressionPointer start;
  if (!tokens_.is_operator(":")) {
    start = expression();
    if (!tokens_.is_operator(":")) return start;
  }
  tokens_.expect_operator(":");
  const auto bound = [&]() -> ExpressionPointer {
    const bool absent = tokens_.is_operator("]") || tokens_.is_operator(",") || tokens_.is_operator(":");
    return absent ? nullptr : expression();
  };
  auto slice = with(make(ExpressionKind::kSlice, offset), nullptr);
  slice = with(std::move(slice), std::move(start));
  slice = with(std::move(slice), bound());
  return with(std::move(slice), tokens_.skip_operator(":") ? bound() : nullptr);
}

ExpressionPointer ExpressionParser::call(ExpressionPointer node) {
  auto made = with(make(ExpressionKind::kCall, tokens_.offset()), std::move(node));
  call_arguments(made->call);
  measure_call(*made);
  return made;
}

void ExpressionParser::call_arguments(CallSyntax& call) {
  tokens_.expect_operator("(");
  const auto require = [&](bool holds) {
    if (!holds) tokens_.refuse("invalid syntax for function call expression");
  };
  bool first = true;
  while (!tokens_.is_operator(")")) {
    if (!first) {
      tokens_.expect_operator(",");
      if (tokens_.is_operator(")")) break;
    }
    first = false;
    if (tokens_.skip_operator("*")) {
      require(!call.spread && !call.spread_named);
      call.spread = expression();
    } else if (tokens_.skip_operator("**")) {
      require(!call.spread_named);
      call.spread_named = expression();
    } else if (tokens_.is(TokenKind::kName) && tokens_.ahead().kind == TokenKind::kOperator &&
               tokens_.ahead().text == "=") {
      require(!call.spread_named);
      std::string name = tokens_.advance().text;
      tokens_.advance();
      for (const auto& given : call.named)
        if (given.first == name) tokens_.refuse(fmt::format("keyword argument repeated: {}", name));
      call.named.emplace_back(std::move(name), expression());
    } else {
      require(!call.spread && !call.spread_named && call.named.empty());
      call.positional.push_back(expression());
    }
  }
  tokens_.expect_operator(")");
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_any_name();
  while (tokens_.skip_operator(".")) name.append(".").append(tokens_.expect_any_name());
  return name;
}

ExpressionPointer ExpressionParser::filters(ExpressionPointer node, bool first_inline) {
  while (first_inline || tokens_.is_operator("|")) {
    if (!first_inline) tokens_.advance();
    first_inline = false;
    auto filter = with(make(ExpressionKind::kFilter, tokens_.offset()), std::move(node));
    filter->name = dotted_name();
    filter->filter = find_filter(filter->name);
    if (tokens_.is_operator("(")) call_arguments(filter->call);
    measure_call(*filter);
    node = std::move(filter);
  }
  return node;
}

ExpressionPointer ExpressionParser::test(ExpressionPointer node) {
  const std::uint32_t offset = tokens_.offset();
  tokens_.expect_name("is");
  const bool negated = tokens_.skip_name("not");
  auto made = with(make(ExpressionKind::kTest, offset), std::move(node));
  made->name = dotted_name();
  made->test = find_test(made->name);
  const auto begins_argument = [&] {
    if (tokens_.is(TokenKind::kName)) return !tokens_.is_any_name({"else", "or", "and"});
    return tokens_.is(TokenKind::kString) || tokens_.is(TokenKind::kInteger) || tokens_.is(TokenKind::kFloat) ||
           tokens_.is_operator("[") || tokens_.is_operator("{");
  };
  if (tokens_.is_operator("(")) {
    call_arguments(made->call);
  } else if (begins_argument()) {
    if (tokens_.is_name("is")) tokens_.refuse("tests cannot be chained with is");
    made->call.positional.push_back(postfix(primary()));
  }
  measure_call(*made);
  return negated ? with(make(ExpressionKind::kNot, offset), std::move(made)) : std::move(made);
}

}  // namespace hk::tokenizer::jinja
