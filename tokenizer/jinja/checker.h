// Checker: what is wrong with a template whatever the input, and what the interpreter wants to know about macros.
//
// Layer: tokenizer/jinja. Jinja2 refuses some templates when it compiles them: unknown filters and tests outside of
// `if`, break outside of a loop, assigning `loop` inside a loop. Inside of `if` an unknown filter only matters when
// reached.
#pragma once

#include "tokenizer/jinja/ast.h"

namespace hk::tokenizer::jinja {

/// Throws SyntaxFailure.
void check_program(const Program& program);

/// Sets uses_caller, uses_varargs and uses_kwargs.
void find_special_names(MacroSyntax& macro);

}  // namespace hk::tokenizer::jinja
