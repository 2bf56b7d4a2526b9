// The shape of UTF-8: where a character ends, which code point it is, what is cut off.
//
// Layer: tokenizer. Everything takes arbitrary bytes; a bad byte is never skipped together with a good one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace hk::tokenizer {

struct Utf8Char {
  char32_t code = 0;
  std::size_t length = 0;  ///< 0: no valid character starts here
};

namespace detail {

struct LeadByte {
  std::size_t length;  // 0: never starts a character
  std::uint8_t low;    // allowed range of the second byte: excludes overlong forms, surrogates and > U+10FFFF
  std::uint8_t high;
};

inline LeadByte lead_byte(std::uint8_t b) {
  if (b < 0x80) return {1, 0, 0};
  if (b < 0xC2) return {0, 0, 0};
  if (b < 0xE0) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b < 0xF0) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b < 0xF4) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

/// How many bytes at the start of `text` belong to one well-formed (perhaps cut) character; `wanted` is its full
/// length.
inline std::size_t well_formed_bytes(std::string_view text, std::size_t& wanted) {
  wanted = 0;
  if (text.empty()) return 0;
  const LeadByte lead = lead_byte(static_cast<std::uint8_t>(text[0]));
  wanted = lead.length;
  if (lead.length <= 1) return lead.length;
  if (text.size() < 2) return 1;
  const auto second = static_cast<std::uint8_t>(text[1]);
  if (second < lead.low || second > lead.high) return 1;
  std::size_t n = 2;
  while (n < lead.length && n < text.size() && (static_cast<std::uint8_t>(text[n]) & 0xC0) == 0x80) ++n;
  return n;
}

}  // namespace detail

/// The character at the start of `text`.
inline Utf8Char decode_char(std::string_view text) {
  if (text.empty()) return {};
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (first < 0x80) return {first, 1};
  std::size_t wanted = 0;
  if (detail::well_formed_bytes(text, wanted) != wanted || wanted == 0) return {};
  char32_t code = first & (0xFFU >> (wanted + 1));
  for (std::size_t i = 1; i < wanted; ++i) code = (code << 6) | (static_cast<std::uint8_t>(text[i]) & 0x3FU);
  return {code, wanted};
}

/// Length of the longest prefix that is valid UTF-8.
inline std::size_t valid_prefix(std::string_view text) { return find_invalid_utf8(text); }

/// True when `text` could become a character by adding bytes.
inline bool is_cut_char(std::string_view text) {
  std::size_t wanted = 0;
  const std::size_t have = detail::well_formed_bytes(text, wanted);
  return have == text.size() && have < wanted;
}

/// The property White_Space of Unicode.
inline bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view kLowerOneEighthBlock = "\xE2\x96\x81";   // U+2581, a blank in SentencePiece texts

/// Appends `text` with every `from` replaced by `to`.
inline void append_replaced(std::string_view text, std::string_view from, std::string_view to, std::string& out) {
  std::size_t at = 0;
  for (std::size_t hit = text.find(from); hit != std::string_view::npos; hit = text.find(from, at)) {
    out.append(text, at, hit - at).append(to);
    at = hit + from.size();
  }
  out.append(text, at, std::string_view::npos);
}

}  // namespace hk::tokenizer
