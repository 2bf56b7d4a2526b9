// ExpressionParser: the expression half of the grammar.
//
// Layer: tokenizer/jinja. Precedence from loose to tight: if-else, or, and, not, comparisons, + -, ~, * / // %, **
// (from the left), unary signs, subscripts and calls, filters and tests.
#pragma once

#include <initializer_list>
#include <string_view>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/token_stream.h"

namespace hk::tokenizer::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPointer expression(bool with_conditional = true);
  struct TupleRules {
    bool simplified = false;  ///< only primaries: targets of assignments
    bool with_conditional = true;
    bool parenthesized = false;  ///< an empty tuple is allowed
  };
  ExpressionPointer tuple(const TupleRules& rules);
  ExpressionPointer primary();
  /// `node | filter | filter`; with `first_inline` the first filter stands without a bar (filter blocks).
  ExpressionPointer filters(ExpressionPointer node, bool first_inline = false);

 private:
  ExpressionPointer make(ExpressionKind kind, std::uint32_t offset) const;
  /// Adds operands and keeps the depth of the tree within limits.
  ExpressionPointer with(ExpressionPointer node, ExpressionPointer operand) const;
  void measure(Expression& node, const Expression& child) const;
  void measure_call(Expression& node) const;

  ExpressionPointer disjunction();
  ExpressionPointer conjunction();
  ExpressionPointer negation();
  ExpressionPointer comparison();
  ExpressionPointer sum();
  ExpressionPointer concatenation();
  ExpressionPointer product();
  ExpressionPointer power();
  ExpressionPointer unary(bool with_filters);
  ExpressionPointer postfix(ExpressionPointer node);
  ExpressionPointer filters_and_tests(ExpressionPointer node);
  ExpressionPointer subscript(ExpressionPointer node);
  ExpressionPointer subscript_part();
  ExpressionPointer call(ExpressionPointer node);
  ExpressionPointer test(ExpressionPointer node);
  ExpressionPointer list();
  ExpressionPointer dict();
  void call_arguments(CallSyntax& call);
  std::string dotted_name();

  /// Counts how deep the parser itself has descended.
  class Descent {
   public:
    explicit Descent(ExpressionParser& parser);
    ~Descent() { --parser_.descent_; }

   private:
    ExpressionParser& parser_;
  };

  TokenStream& tokens_;
  std::uint32_t descent_ = 0;
};

}  // namespace hk::tokenizer::jinja
