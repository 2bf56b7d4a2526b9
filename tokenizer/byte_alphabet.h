// The byte alphabet of byte-level BPE: every byte is written as one printable character.
//
// Layer: tokenizer. Bytes 21-7E, A1-AC, AE-FF stand for the code point of the same number, the other 68, in increasing
// order, for U+0100, U+0101, ...; so a blank is U+0120 and a line end U+010A.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hk::tokenizer {

/// UTF-8 of the character that stands for `byte`: one or two bytes.
std::string_view alphabet_char(std::uint8_t byte);
std::optional<std::uint8_t> alphabet_byte(char32_t character);

/// Appends `bytes` in the alphabet.
void append_spelled(std::string_view bytes, std::string& out);
/// Appends the bytes that `text` stands for; characters outside the alphabet as they are.
void append_unspelled(std::string_view text, std::string& out);

}  // namespace hk::tokenizer
