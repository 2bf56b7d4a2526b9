// All string literals of a template.
//
// Layer: tokenizer/jinja.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/jinja/ast.h"

namespace hk::tokenizer::jinja {

std::vector<std::string> string_literals(const Program& program);  ///< sorted, each once

}  // namespace hk::tokenizer::jinja
