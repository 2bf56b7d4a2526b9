// Tables of the byte alphabet, both ways.
#include "tokenizer/byte_alphabet.h"

#include <algorithm>
#include <array>

#include "tokenizer/utf8.h"

namespace hk::tokenizer {
namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr char32_t kCharacters = kFirstStandIn + 68;

struct Alphabet {
  std::array<std::array<char, 2>, 256> text{};
  std::array<std::uint8_t, 256> length{};
  std::array<std::uint8_t, kCharacters> byte{};
  std::array<bool, kCharacters> known{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  char32_t stand_in = kFirstStandIn;
  for (unsigned b = 0; b < 256; ++b) {
    const bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const char32_t c = itself ? b : stand_in++;
    if (c < 0x80) {
      alphabet.text[b] = {static_cast<char>(c), 0};
      alphabet.length[b] = 1;
    } else {
      alphabet.text[b] = {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
      alphabet.length[b] = 2;
    }
    alphabet.byte[c] = static_cast<std::uint8_t>(b);
    alphabet.known[c] = true;
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string_view alphabet_char(std::uint8_t byte) { return {kAlphabet.text[byte].data(), kAlphabet.length[byte]}; }

std::optional<std::uint8_t> alphabet_byte(char32_t character) {
  if (character >= kCharacters || !kAlphabet.known[character]) return std::nullopt;
  return kAlphabet.byte[character];
}

void append_spelled(std::string_view bytes, std::string& out) {
  for (const char c : bytes) out += alphabet_char(static_cast<std::uint8_t>(c));
}

void append_unspelled(std::string_view text, std::string& out) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_char(text.substr(at));
    const std::size_t length = std::max<std::size_t>(c.length, 1);
    const auto byte = c.length == 0 ? std::nullopt : alphabet_byte(c.code);
    if (byte) {
      out += static_cast<char>(*byte);
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
}

}  // namespace hk::tokenizer
