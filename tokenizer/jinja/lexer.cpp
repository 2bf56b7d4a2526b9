// The lexer: text until a tag begins, then the tag's tokens until it ends.
#include "tokenizer/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/string_literal.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text();
    add(TokenKind::kEnd, source_.size());
    return std::move(tokens_);
  }

 private:
  bool looking_at(std::string_view what, std::size_t at) const { return source_.substr(at, what.size()) == what; }
  bool looking_at(std::string_view what) const { return looking_at(what, at_); }

  [[noreturn]] void refuse(const std::string& message, std::size_t offset) const {
    throw SyntaxFailure(message, offset);
  }

  void add(TokenKind kind, std::size_t offset, std::string text = {}) {
    tokens_.push_back({kind, offset, std::move(text), {}});
  }

  /// Everything consumed so far ends in a line break: the next text begins a line.
  void consumed_until(std::size_t end) {
    line_start_ = end > 0 && end > at_ && source_[end - 1] == '\n';
    at_ = end;
  }

  std::size_t after_blanks(std::size_t at) const {
    while (at < source_.size()) {
      const CodePoint point = decode_at(source_, at);
      if (!is_space(point.value)) break;
      at += point.size;
    }
    return at;
  }

  std::size_t before_blanks(std::size_t begin, std::size_t end) const {
    while (end > begin) {
      const std::size_t start = previous_start(source_.substr(0, end), end);
      if (start < begin || !is_space(decode_at(source_, start).value)) break;
      end = start;
    }
    return end;
  }

  /// Adds source [begin, tag) as data after the tag that follows has had its say about the blanks before it.
  void add_data(std::size_t begin, std::size_t tag, char sign, bool strips_line) {
    std::size_t end = tag;
    if (sign == '-') {
      end = before_blanks(begin, tag);
    } else if (sign != '+' && strips_line && tag > begin) {
      const std::size_t line_break = source_.substr(begin, tag - begin).rfind('\n');
      const bool has_break = line_break != std::string_view::npos;
      const std::size_t line = has_break ? begin + line_break + 1 : begin;
      if ((has_break || line_start_) && line < tag && before_blanks(line, tag) == line) end = line;
    }
    if (end > begin) add(TokenKind::kData, begin, std::string(source_.substr(begin, end - begin)));
  }

  static char sign_at(std::string_view source, std::size_t at) {
    return at < source.size() && (source[at] == '-' || source[at] == '+') ? source[at] : '\0';
  }

  void text() {
    const std::size_t begin = at_;
    std::size_t tag = begin;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string_view::npos) {
        add(TokenKind::kData, begin, std::string(source_.substr(begin)));
        return consumed_until(source_.size());
      }
      const char next = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (next == '%' || next == '#' || next == '{') break;
    }
    const char sign = sign_at(source_, tag + 2), kind = source_[tag + 1];
    add_data(begin, tag, sign, kind != '{');
    const std::size_t inside = tag + 2 + (sign != '\0' ? 1 : 0);
    if (kind == '#') return comment(tag, inside);
    if (kind == '%') {
      if (const std::size_t after = raw_begin(inside); after != std::string_view::npos) return raw(tag, after);
    }
    add(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, tag);
    consumed_until(inside);
    expression(kind == '%' ? "%}" : "}}", kind == '%');
  }

  /// End of a tag at `at`: after "-%}" and blanks, "+%}", or "%}" and one line break; npos when no end is there.
  std::size_t tag_end(std::size_t at, std::string_view close, bool trims) const {
    if (at >= source_.size()) return std::string_view::npos;
    if (source_[at] == '-' && looking_at(close, at + 1)) return after_blanks(at + 1 + close.size());
    if (trims && source_[at] == '+' && looking_at(close, at + 1)) return at + 1 + close.size();
    if (!looking_at(close, at)) return std::string_view::npos;
    const std::size_t end = at + close.size();
    return trims && end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  void comment(std::size_t tag, std::size_t inside) {
    if (inside == source_.size()) return consumed_until(inside);  // Jinja2 forgives what begins at the very end
    const std::size_t close = source_.find("#}", inside);
    if (close == std::string_view::npos) refuse("Missing end of comment tag", tag);
    const bool has_sign = close > inside && (source_[close - 1] == '-' || source_[close - 1] == '+');
    consumed_until(tag_end(has_sign ? close - 1 : close, "#}", true));
  }

  /// After "{% raw %}", or npos when the tag is another one. No line break is dropped after it.
  std::size_t raw_begin(std::size_t inside) const {
    std::size_t at = after_blanks(inside);
    if (!looking_at("raw", at)) return std::string_view::npos;
    at = after_blanks(at + 3);
    if (looking_at("-%}", at)) return after_blanks(at + 3);
    return looking_at("%}", at) ? at + 2 : std::string_view::npos;
  }

  void raw(std::size_t tag, std::size_t inside) {
    consumed_until(inside);
    if (inside == source_.size()) return;
    for (std::size_t end = inside;; ++end) {
      end = source_.find("{%", end);
      if (end == std::string_view::npos) refuse("Missing end of raw directive", tag);
      const char sign = sign_at(source_, end + 2);
      std::size_t at = after_blanks(end + 2 + (sign != '\0' ? 1 : 0));
      if (!looking_at("endraw", at)) continue;
      const std::size_t after = tag_end(after_blanks(at + 6), "%}", true);
      if (after == std::string_view::npos) continue;
      add_data(inside, end, sign, true);
      return consumed_until(after);
    }
  }

  void expression(std::string_view close, bool is_block) {
    std::vector<char> open;
    while (at_ < source_.size()) {
      if (open.empty()) {
        const std::size_t end = tag_end(at_, close, is_block);
        if (end != std::string_view::npos) {
          add(is_block ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, at_);
          return consumed_until(end);
        }
      }
      const std::size_t after = after_blanks(at_);
      if (after > at_) {
        consumed_until(after);
        continue;
      }
      if (!number() && !name() && !string()) operation(open);
    }
  }

  /// Digits with single underscores between; the end of the longest run at `at`.
  std::size_t digits_end(std::size_t at) const {
    std::size_t end = at;
    while (end < source_.size() && is_ascii_digit(source_[end])) {
      ++end;
      if (end + 1 < source_.size() && source_[end] == '_' && is_ascii_digit(source_[end + 1])) ++end;
    }
    return end;
  }

  bool number() {
    if (!is_ascii_digit(source_[at_])) return false;
    if (float_number()) return true;
    const std::size_t begin = at_;
    std::size_t end = begin;
    unsigned base = 10;
    const char mark = begin + 1 < source_.size() ? static_cast<char>(source_[begin + 1] | 0x20) : '\0';
    const unsigned marked = source_[begin] != '0' ? 0 : mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    std::string digits;
    if (marked != 0) {
      const auto fits = [&](std::size_t at) {
        if (at >= source_.size()) return false;
        const char c = static_cast<char>(source_[at] | 0x20);
        if (is_ascii_digit(source_[at])) return static_cast<unsigned>(source_[at] - '0') < marked;
        return marked == 16 && c >= 'a' && c <= 'f';
      };
      std::size_t at = begin + 2;
      while (fits(at) || (at < source_.size() && source_[at] == '_' && fits(at + 1))) {
        if (source_[at] == '_') ++at;
        digits += source_[at++];
      }
      if (!digits.empty()) {
        base = marked;
        end = at;
      }
    }
    if (digits.empty()) {
      end = digits_end(begin);
      if (source_[begin] == '0') {  // only zeros may follow a leading zero
        end = begin + 1;
        while (looking_at("0", end) || looking_at("_0", end)) end += source_[end] == '_' ? 2 : 1;
      }
      for (std::size_t i = begin; i < end; ++i)
        if (source_[i] != '_') digits += source_[i];
    }
    add(TokenKind::kInteger, begin, std::string(source_.substr(begin, end - begin)));
    try {
      tokens_.back().number = integer_from_digits(digits, base);
    } catch (const Failure& failure) {
      refuse(failure.what(), begin);
    }
    consumed_until(end);
    return true;
  }

  bool float_number() {
    if (at_ > 0 && source_[at_ - 1] == '.') return false;
    std::size_t end = digits_end(at_);
    bool is_float = false;
    if (end + 1 < source_.size() && source_[end] == '.' && is_ascii_digit(source_[end + 1])) {
      end = digits_end(end + 1);
      is_float = true;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t at = end + 1;
      if (at < source_.size() && (source_[at] == '+' || source_[at] == '-')) ++at;
      if (at < source_.size() && is_ascii_digit(source_[at])) {
        end = digits_end(at);
        is_float = true;
      }
    }
    if (!is_float) return false;
    std::string text;
    for (std::size_t i = at_; i < end; ++i)
      if (source_[i] != '_') text += source_[i];
    add(TokenKind::kFloat, at_, text);
    tokens_.back().number = Value::number(std::strtod(text.c_str(), nullptr));
    consumed_until(end);
    return true;
  }

  bool name() {
    std::size_t end = at_;
    while (end < source_.size()) {
      const CodePoint point = decode_at(source_, end);
      if (!is_identifier_part(point.value)) break;
      end += point.size;
    }
    if (end == at_) return false;
    if (!is_identifier_start(decode_at(source_, at_).value)) refuse("Invalid character in identifier", at_);
    add(TokenKind::kName, at_, std::string(source_.substr(at_, end - at_)));
    consumed_until(end);
    return true;
  }

  bool string() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) refuse(fmt::format("the string that begins with {} does not end", quote), at_);
    add(TokenKind::kString, at_, unescape_literal(source_.substr(at_ + 1, end - at_ - 1), at_ + 1));
    consumed_until(end + 1);
    return true;
  }

  void operation(std::vector<char>& open) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    std::size_t size = 0;
    for (const auto two : kTwo)
      if (looking_at(two)) size = 2;
    const char c = source_[at_];
    if (size == 0 && std::string_view("+-/*%~[](){}><=.:|,;").find(c) != std::string_view::npos) size = 1;
    if (size == 0) {
      const CodePoint point = decode_at(source_, at_);
      refuse(fmt::format("unexpected character '{}'", source_.substr(at_, point.size)), at_);
    }
    if (size == 1 && (c == '(' || c == '[' || c == '{')) open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (size == 1 && (c == ')' || c == ']' || c == '}')) {
      if (open.empty()) refuse(fmt::format("unexpected '{}'", c), at_);
      if (open.back() != c) refuse(fmt::format("unexpected '{}', expected '{}'", c, open.back()), at_);
      open.pop_back();
    }
    add(TokenKind::kOperator, at_, std::string(source_.substr(at_, size)));
    consumed_until(at_ + size);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalize_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view normalized) { return Lexer(normalized).run(); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "template text";
    case TokenKind::kVariableBegin:
      return "begin of print statement";
    case TokenKind::kVariableEnd:
      return "end of print statement";
    case TokenKind::kBlockBegin:
      return "begin of statement block";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kString:
      return "string";
    case TokenKind::kInteger:
      return "integer";
    case TokenKind::kFloat:
      return "float";
    case TokenKind::kEnd:
      return "end of template";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace hk::tokenizer::jinja
