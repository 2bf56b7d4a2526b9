// Parsing statements.
#include "tokenizer/jinja/parser.h"

#include <algorithm>
#include <set>

#include "tokenizer/jinja/checker.h"
#include "tokenizer/jinja/expression_parser.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::uint32_t kMaxStatementDepth = 100;

using Names = std::vector<std::string_view>;

std::string one_of(const Names& names) {
  std::string out;
  for (const auto name : names) out += fmt::format("{}'{}'", out.empty() ? "" : " or ", name);
  return out;
}

/// True when `name` may be assigned to.
bool assignable(const Expression& target) {
  switch (target.kind) {
    case ExpressionKind::kName:
    case ExpressionKind::kNamespaceRef:
      return true;
    case ExpressionKind::kTuple:
      return std::all_of(target.operands.begin(), target.operands.end(),
                         [](const auto& each) { return assignable(*each); });
    default:
      return false;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  Block run() {
    Block body = block({});
    if (!tokens_.is(TokenKind::kEnd)) tokens_.unexpected("the end of the template");
    return body;
  }

 private:
  StatementPointer make(StatementKind kind) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->offset = tokens_.offset();
    return statement;
  }

  /// Statements up to a tag that is one of `ends`, whose name is then the current token.
  Block block(const Names& ends) {
    if (++depth_ > kMaxStatementDepth) tokens_.refuse("the statements are nested too deeply");
    Block out;
    for (;;) {
      if (tokens_.is(TokenKind::kData)) {
        auto text = make(StatementKind::kText);
        text->text = Value::string(tokens_.advance().text);
        out.push_back(std::move(text));
      } else if (tokens_.is(TokenKind::kVariableBegin)) {
        auto print = make(StatementKind::kPrint);
        tokens_.advance();
        print->expressions.push_back(expressions_.tuple({}));
        tokens_.expect(TokenKind::kVariableEnd);
        out.push_back(std::move(print));
      } else if (tokens_.is(TokenKind::kBlockBegin)) {
        tokens_.advance();
        if (std::any_of(ends.begin(), ends.end(), [&](auto name) { return tokens_.is_name(name); })) break;
        out.push_back(statement(ends));
        tokens_.expect(TokenKind::kBlockEnd);
      } else {
        break;
      }
    }
    --depth_;
    return out;
  }

  /// The body of a tag: from its end to one of `ends`.
  Block body(const Names& ends) {
    tokens_.skip_operator(":");
    tokens_.expect(TokenKind::kBlockEnd);
    const std::size_t open_at = open_tags_.size();
    Block out = block(ends);
    if (tokens_.is(TokenKind::kEnd)) {
      const std::string inside = open_at == 0 ? "" : fmt::format("; the innermost open tag is '{}'", open_tags_.back());
      tokens_.refuse(fmt::format("unexpected end of template, expected {}{}", one_of(ends), inside));
    }
    return out;
  }
  Block body_to(std::string_view end) {
    Block out = body({end});
    tokens_.advance();
    return out;
  }

  StatementPointer statement(const Names& ends) {
    if (!tokens_.is(TokenKind::kName)) tokens_.refuse("tag name expected");
    const std::string tag = tokens_.current().text;
    using Method = StatementPointer (Parser::*)();
    static const std::pair<std::string_view, Method> kTags[] = {
        {"for", &Parser::for_loop},    {"if", &Parser::condition},          {"set", &Parser::assignment},
        {"macro", &Parser::macro},     {"call", &Parser::call_block},       {"filter", &Parser::filter_block},
        {"with", &Parser::with_block}, {"block", &Parser::named_block},     {"autoescape", &Parser::autoescape},
        {"print", &Parser::print},     {"generation", &Parser::generation}, {"break", &Parser::jump},
        {"continue", &Parser::jump},   {"include", &Parser::loader},        {"import", &Parser::loader},
        {"from", &Parser::loader},     {"extends", &Parser::loader},
    };
    for (const auto& [name, method] : kTags) {
      if (name != tag) continue;
      open_tags_.push_back(tag);
      StatementPointer made = (this->*method)();
      open_tags_.pop_back();
      return made;
    }
    tokens_.refuse(ends.empty() ? fmt::format("unknown tag '{}'", tag)
                                : fmt::format("unknown tag '{}', expected {}", tag, one_of(ends)));
  }

  ExpressionPointer target(bool with_namespace) {
    const std::uint32_t offset = tokens_.offset();
    if (with_namespace && tokens_.is(TokenKind::kName) && tokens_.ahead().kind == TokenKind::kOperator &&
        tokens_.ahead().text == ".") {
      auto node = std::make_unique<Expression>();
      node->kind = ExpressionKind::kNamespaceRef;
      node->offset = offset;
      node->name = tokens_.expect_any_name();
      tokens_.expect_operator(".");
      node->attribute = tokens_.expect_any_name();
      return node;
    }
    auto node = expressions_.tuple({.simplified = true});
    if (!assignable(*node)) throw SyntaxFailure("cannot assign to this", offset);
    return node;
  }

  std::string name_to_assign() {
    const std::string name = tokens_.expect_any_name();
    for (const auto* constant : {"true", "false", "none", "True", "False", "None"})
      if (name == constant) tokens_.refuse(fmt::format("cannot assign to {}", name));
    return name;
  }

  StatementPointer for_loop() {
    auto node = make(StatementKind::kFor);
    tokens_.expect_name("for");
    node->target = target(false);
    tokens_.expect_name("in");
    node->expressions.push_back(expressions_.tuple({.with_conditional = false}));
    node->expressions.push_back(tokens_.skip_name("if") ? expressions_.expression() : nullptr);
    node->recursive = tokens_.skip_name("recursive");
    node->blocks.push_back(body({"endfor", "else"}));
    node->blocks.emplace_back();
    if (tokens_.skip_name("else")) node->blocks[1] = body({"endfor"});
    tokens_.expect_name("endfor");
    return node;
  }

  StatementPointer condition() {
    auto node = make(StatementKind::kIf);
    tokens_.advance();
    for (;;) {
      node->expressions.push_back(expressions_.tuple({.with_conditional = false}));
      node->blocks.push_back(body({"elif", "else", "endif"}));
      if (!tokens_.skip_name("elif")) break;
    }
    if (tokens_.skip_name("else")) node->blocks.push_back(body({"endif"}));
    tokens_.expect_name("endif");
    return node;
  }

  StatementPointer assignment() {
    auto node = make(StatementKind::kSet);
    tokens_.expect_name("set");
    node->target = target(true);
    if (tokens_.skip_operator("=")) {
      node->expressions.push_back(expressions_.tuple({}));
      return node;
    }
    node->kind = StatementKind::kSetBlock;
    node->expressions.push_back(tokens_.is_operator("|") ? expressions_.filters(nullptr) : nullptr);
    node->blocks.push_back(body_to("endset"));
    return node;
  }

  void signature(MacroSyntax& macro) {
    tokens_.expect_operator("(");
    while (!tokens_.is_operator(")")) {
      if (!macro.parameters.empty()) tokens_.expect_operator(",");
      std::string name = name_to_assign();
      if (std::find(macro.parameters.begin(), macro.parameters.end(), name) != macro.parameters.end())
        tokens_.refuse(fmt::format("duplicate argument '{}'", name));
      macro.parameters.push_back(std::move(name));
      if (tokens_.skip_operator("="))
        macro.defaults.push_back(expressions_.expression());
      else if (!macro.defaults.empty())
        tokens_.refuse("non-default argument follows default argument");
    }
    tokens_.expect_operator(")");
  }

  StatementPointer macro() {
    auto node = make(StatementKind::kMacro);
    tokens_.expect_name("macro");
    node->macro = std::make_shared<MacroSyntax>();
    node->macro->name = node->name = name_to_assign();
    signature(*node->macro);
    node->macro->body = body_to("endmacro");
    find_special_names(*node->macro);
    return node;
  }

  StatementPointer call_block() {
    auto node = make(StatementKind::kCall);
    tokens_.expect_name("call");
    node->macro = std::make_shared<MacroSyntax>();
    node->macro->name = "caller";
    if (tokens_.is_operator("(")) signature(*node->macro);
    node->expressions.push_back(expressions_.expression());
    if (node->expressions[0]->kind != ExpressionKind::kCall) tokens_.refuse("expected a call");
    node->macro->body = body_to("endcall");
    find_special_names(*node->macro);
    return node;
  }

  StatementPointer filter_block() {
    auto node = make(StatementKind::kFilterBlock);
    tokens_.expect_name("filter");
    node->expressions.push_back(expressions_.filters(nullptr, true));
    node->blocks.push_back(body_to("endfilter"));
    return node;
  }

  StatementPointer with_block() {
    auto node = make(StatementKind::kWith);
    tokens_.expect_name("with");
    while (!tokens_.is(TokenKind::kBlockEnd)) {
      if (!node->targets.empty()) tokens_.expect_operator(",");
      node->targets.push_back(target(false));
      tokens_.expect_operator("=");
      node->expressions.push_back(expressions_.expression());
    }
    node->blocks.push_back(body_to("endwith"));
    return node;
  }

  StatementPointer named_block() {
    auto node = make(StatementKind::kBlock);
    tokens_.expect_name("block");
    node->name = tokens_.expect_any_name();
    if (!block_names_.insert(node->name).second) tokens_.refuse(fmt::format("block '{}' defined twice", node->name));
    node->scoped = tokens_.skip_name("scoped");
    tokens_.skip_name("required");
    if (tokens_.is_operator("-")) tokens_.refuse("block names may not contain hyphens");
    node->blocks.push_back(body_to("endblock"));
    tokens_.skip_name(node->name);
    return node;
  }

  StatementPointer autoescape() {
    auto node = make(StatementKind::kAutoescape);
    tokens_.expect_name("autoescape");
    node->expressions.push_back(expressions_.expression());
    node->blocks.push_back(body_to("endautoescape"));
    return node;
  }

  StatementPointer print() {
    auto node = make(StatementKind::kPrint);
    tokens_.expect_name("print");
    while (!tokens_.is(TokenKind::kBlockEnd)) {
      if (!node->expressions.empty()) tokens_.expect_operator(",");
      node->expressions.push_back(expressions_.expression());
    }
    return node;
  }

  StatementPointer generation() {
    auto node = make(StatementKind::kScope);
    tokens_.expect_name("generation");
    node->blocks.push_back(body_to("endgeneration"));
    return node;
  }

  StatementPointer jump() {
    auto node = make(tokens_.is_name("break") ? StatementKind::kBreak : StatementKind::kContinue);
    tokens_.advance();
    return node;
  }

  /// Tags that load another template: a template that reaches one fails, one that only mentions it works.
  StatementPointer loader() {
    auto node = make(StatementKind::kLoader);
    node->name = tokens_.expect_any_name();
    node->expressions.push_back(expressions_.expression());
    if (node->name == "import") {
      tokens_.expect_name("as");
      name_to_assign();
    } else if (node->name == "from") {
      tokens_.expect_name("import");
      while (tokens_.is(TokenKind::kName) && !tokens_.is_any_name({"with", "without"})) {
        tokens_.advance();
        if (tokens_.skip_name("as")) name_to_assign();
        if (!tokens_.skip_operator(",")) break;
      }
    } else if (node->name == "include" && tokens_.skip_name("ignore")) {
      tokens_.expect_name("missing");
    }
    if (tokens_.is_any_name({"with", "without"})) {
      tokens_.advance();
      tokens_.expect_name("context");
    }
    return node;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  std::uint32_t depth_ = 0;
  std::vector<std::string> open_tags_;
  std::set<std::string> block_names_;
};

}  // namespace

std::shared_ptr<const Program> parse_program(std::string_view source) {
  auto program = std::make_shared<Program>();
  program->source = normalize_source(source);
  constexpr std::size_t kMaxSource = std::size_t{1} << 24;
  if (program->source.size() > kMaxSource) throw SyntaxFailure(fmt::format("longer than {} bytes", kMaxSource), 0);
  program->body = Parser(program->source).run();
  check_program(*program);
  return program;
}

}  // namespace hk::tokenizer::jinja
