// Escapes in string literals.
#include "tokenizer/jinja/string_literal.h"

#include <fmt/format.h>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/text.h"

namespace hk::tokenizer::jinja {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::string unescape_literal(std::string_view body, std::size_t offset) {
  std::string out;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    const std::size_t start = i++;
    const auto hexadecimal = [&](std::size_t digits, char kind) {
      char32_t value = 0;
      for (std::size_t k = 0; k < digits; ++k) {
        const int digit = i + 1 < body.size() ? hex_value(body[i + 1]) : -1;
        if (digit < 0) throw SyntaxFailure(fmt::format("truncated \\{} escape in a string", kind), offset + start);
        value = value << 4 | static_cast<char32_t>(digit);
        ++i;
      }
      if (value > 0x10FFFF) throw SyntaxFailure("illegal Unicode character in a string", offset + start);
      encode_to(out, value);
    };
    const char c = body[i];  // the lexer never ends a literal after a backslash
    switch (c) {
      case '\n':
        break;  // a line break after a backslash disappears
      case '\\':
      case '\'':
      case '"':
        out += c;
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'v':
        out += '\v';
        break;
      case 'x':
        hexadecimal(2, c);
        break;
      case 'u':
        hexadecimal(4, c);
        break;
      case 'U':
        hexadecimal(8, c);
        break;
      case 'N':
        throw SyntaxFailure("named characters (\\N{...}) are not supported", offset + start);
      default:
        if (c >= '0' && c <= '7') {
          char32_t value = static_cast<char32_t>(c - '0');
          for (int k = 0; k < 2 && i + 1 < body.size() && body[i + 1] >= '0' && body[i + 1] <= '7'; ++k)
            value = value * 8 + static_cast<char32_t>(body[++i] - '0');
          encode_to(out, value);
        } else if (static_cast<unsigned char>(c) < 0x80) {
          out += '\\';
          out += c;
        } else {
          // Python turns the character into an escape first, whose own backslash then pairs with this one.
          const CodePoint point = decode_at(body, i);
          const auto code = static_cast<std::uint32_t>(point.value);
          out += code < 0x100     ? fmt::format("\\x{:02x}", code)
                 : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                  : fmt::format("\\U{:08x}", code);
          i += point.size - 1;
        }
    }
  }
  return out;
}

}  // namespace hk::tokenizer::jinja
