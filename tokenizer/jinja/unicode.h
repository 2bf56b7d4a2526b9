// Unicode properties and case mapping as Python's str has them.
//
// Layer: tokenizer/jinja. Properties come from utf8proc; what it lacks (mappings to several characters, the final
// sigma) is added here.
#pragma once

#include "tokenizer/jinja/text.h"

namespace hk::tokenizer::jinja {

struct SpecialCase {
  char32_t from;
  char32_t to[3];  ///< zero-terminated unless three long
};
const SpecialCase* special_upper(char32_t value);  ///< null when the mapping is one character
const SpecialCase* special_title(char32_t value);

bool is_space(char32_t value);      ///< str.isspace, also \s of the template lexer
bool is_printable(char32_t value);  ///< what repr leaves as it is
bool is_letter(char32_t value);
bool is_decimal(char32_t value);
bool is_digit(char32_t value);
bool is_numeric(char32_t value);
bool is_upper(char32_t value);
bool is_lower(char32_t value);
bool is_title(char32_t value);  ///< title case letters such as U+01C5
inline bool is_cased(char32_t value) { return is_upper(value) || is_lower(value) || is_title(value); }
bool is_identifier_start(char32_t value);
bool is_identifier_part(char32_t value);
int decimal_value(char32_t value);   ///< -1 when it is no decimal digit
bool is_line_break(char32_t value);  ///< where str.splitlines cuts ("\r\n" is one)

Text to_upper(const Text& text);
Text to_lower(const Text& text);
Text to_title(const Text& text);        ///< str.title
Text to_capitalized(const Text& text);  ///< str.capitalize
Text to_swapped(const Text& text);      ///< str.swapcase
Text to_casefolded(const Text& text);

}  // namespace hk::tokenizer::jinja
