// Escapes in string literals, as Python's unicode-escape reads them.
//
// Layer: tokenizer/jinja.
#pragma once

#include <string>
#include <string_view>

namespace hk::tokenizer::jinja {

/// `body` is what stands between the quotes, `offset` its place for messages. Throws SyntaxFailure.
std::string unescape_literal(std::string_view body, std::size_t offset);

}  // namespace hk::tokenizer::jinja
