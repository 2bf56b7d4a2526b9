// TokenStream: a cursor over tokens with the questions a parser asks.
//
// Layer: tokenizer/jinja.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/lexer.h"

namespace hk::tokenizer::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token& advance() {
    Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  std::uint32_t offset() const { return static_cast<std::uint32_t>(current().offset); }

  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const { return is(TokenKind::kOperator) && current().text == text; }
  bool is_name(std::string_view text) const { return is(TokenKind::kName) && current().text == text; }
  bool is_any_name(std::initializer_list<std::string_view> names) const {
    for (const auto name : names)
      if (is_name(name)) return true;
    return false;
  }

  bool skip_operator(std::string_view text) { return is_operator(text) && (advance(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (advance(), true); }

  void expect_operator(std::string_view text) {
    if (!skip_operator(text)) unexpected(fmt::format("'{}'", text));
  }
  void expect_name(std::string_view text) {
    if (!skip_name(text)) unexpected(fmt::format("'{}'", text));
  }
  std::string expect_any_name() {
    if (!is(TokenKind::kName)) unexpected("a name");
    return advance().text;
  }
  void expect(TokenKind kind) {
    if (!is(kind)) unexpected(describe(Token{kind, 0, {}, {}}));
    advance();
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    refuse(fmt::format("expected {}, got {}", wanted, describe(current())));
  }
  [[noreturn]] void refuse(const std::string& message) const { throw SyntaxFailure(message, current().offset); }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace hk::tokenizer::jinja
