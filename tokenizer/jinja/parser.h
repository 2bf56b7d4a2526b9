// Parser: tokens to syntax tree, by the grammar of Jinja2.
//
// Layer: tokenizer/jinja.
#pragma once

#include <memory>
#include <string_view>

#include "tokenizer/jinja/ast.h"

namespace hk::tokenizer::jinja {

/// Parses and checks. Throws SyntaxFailure with the offset in Program::source (normalize_source of `source`).
std::shared_ptr<const Program> parse_program(std::string_view source);

}  // namespace hk::tokenizer::jinja
