// Rewrites a regular expression from the spelling of tokenizer.json files (Oniguruma) to PCRE2's.
//
// Layer: tokenizer. Only what changes meaning between the two engines is touched:
//  * `\s`, `\S` become the list of Unicode white space (PCRE2 also counts U+180E);
//  * `\p{Han}` and other scripts become `\p{sc:Han}` (PCRE2 means script extensions);
//  * `[A&&[B]]`, class intersection, becomes `(?:(?=[B])[A])`;
//  * `\u1234` becomes `\x{1234}`.
#pragma once

#include <string>
#include <string_view>

namespace hk::tokenizer {

std::string pcre2_spelling(std::string_view expression);

}  // namespace hk::tokenizer
