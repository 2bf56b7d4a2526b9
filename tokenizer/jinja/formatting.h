// The two formatting languages of Python strings: `%` and str.format.
//
// Layer: tokenizer/jinja.
#pragma once

#include "tokenizer/jinja/value.h"

namespace hk::tokenizer::jinja {

/// `format % arguments`; a tuple gives several arguments, a dict named ones. With `markup` text arguments are escaped.
Text format_percent(const Text& format, const Value& arguments, bool markup);

/// format.format(*positional, **named).
Text format_braces(const Text& format, const Arguments& arguments, bool markup);

/// format(value, specification).
Text format_value(const Value& value, const Text& specification, bool markup);

}  // namespace hk::tokenizer::jinja
