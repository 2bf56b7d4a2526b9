// Lexer: template source to tokens, white-space control included.
//
// Layer: tokenizer/jinja. The environment is fixed: trim_blocks and lstrip_blocks on, one final line break dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

enum class TokenKind : std::uint8_t {
  kData,  ///< text of the template
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,  ///< `text` says which
  kEnd,
};

struct Token {
  TokenKind kind;
  std::size_t offset;  ///< in the normalized source
  std::string text;    ///< data, name, operator, or the value of a string literal
  Value number;        ///< of integer and float literals
};

/// "\r\n" and "\r" read as "\n", one final line break dropped.
std::string normalize_source(std::string_view source);

/// Throws SyntaxFailure.
std::vector<Token> tokenize(std::string_view normalized);

/// What to call a token in messages: "'endfor'", "end of statement block".
std::string describe(const Token& token);

}  // namespace hk::tokenizer::jinja
