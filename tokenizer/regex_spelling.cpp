// The rewriting itself: one pass over the expression that knows whether it is inside a character class.
#include "tokenizer/regex_spelling.h"

#include <algorithm>
#include <iterator>

namespace hk::tokenizer {
namespace {

constexpr std::string_view kWhiteSpace =
    R"re(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})re";

// Scripts that pre-tokenizers name; a script that is missing here keeps PCRE2's meaning.
constexpr std::string_view kScripts[] = {"Arabic",   "Armenian", "Bengali",   "Bopomofo",  "Cyrillic", "Devanagari",
                                         "Ethiopic", "Georgian", "Greek",     "Gujarati",  "Gurmukhi", "Han",
                                         "Hangul",   "Hebrew",   "Hiragana",  "Kannada",   "Katakana", "Khmer",
                                         "Lao",      "Latin",    "Malayalam", "Mongolian", "Myanmar",  "Sinhala",
                                         "Tamil",    "Telugu",   "Thai",      "Tibetan"};

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Rewriter {
 public:
  explicit Rewriter(std::string_view in) : in_(in) {}

  std::string run() {
    while (at_ < in_.size()) {
      if (in_[at_] == '\\') {
        out_ += escape(false);
      } else if (in_[at_] == '[') {
        out_ += char_class();
      } else {
        out_ += in_[at_++];
      }
    }
    return std::move(out_);
  }

 private:
  /// The escape at at_, rewritten.
  std::string escape(bool in_class) {
    const std::string_view rest = in_.substr(at_);
    if (rest.size() < 2) {
      ++at_;
      return std::string(rest);
    }
    if (rest[1] == 's' || (rest[1] == 'S' && !in_class)) {
      at_ += 2;
      if (in_class) return std::string(kWhiteSpace);
      return (rest[1] == 's' ? "[" : "[^") + std::string(kWhiteSpace) + "]";
    }
    if ((rest[1] == 'p' || rest[1] == 'P') && rest.size() > 2 && rest[2] == '{') {
      const std::size_t end = rest.find('}');
      if (end != std::string_view::npos) {
        at_ += end + 1;
        std::string_view name = rest.substr(3, end - 3);
        const bool negated = !name.empty() && name[0] == '^';
        if (negated) name.remove_prefix(1);
        if (std::find(std::begin(kScripts), std::end(kScripts), name) == std::end(kScripts))
          return std::string(rest.substr(0, end + 1));
        return std::string(rest.substr(0, 3)) + (negated ? "^" : "") + "sc:" + std::string(name) + "}";
      }
    }
    if (rest[1] == 'u' && rest.size() >= 6 && std::all_of(rest.begin() + 2, rest.begin() + 6, is_hex)) {
      at_ += 6;
      return "\\x{" + std::string(rest.substr(2, 4)) + "}";
    }
    at_ += 2;
    return std::string(rest.substr(0, 2));
  }

  /// The class at at_ ('['), rewritten.
  std::string char_class() {
    std::string text(1, in_[at_++]);
    if (at_ < in_.size() && in_[at_] == '^') text += in_[at_++];
    if (at_ < in_.size() && in_[at_] == ']') text += in_[at_++];  // a leading ] is literal
    while (at_ < in_.size()) {
      if (in_[at_] == '\\') {
        text += escape(true);
      } else if (in_.substr(at_, 2) == "[:") {  // POSIX name
        const std::size_t end = in_.find(":]", at_);
        const std::size_t stop = end == std::string_view::npos ? in_.size() : end + 2;
        text += in_.substr(at_, stop - at_);
        at_ = stop;
      } else if (in_.substr(at_, 3) == "&&[") {
        at_ += 2;
        const std::string other = char_class();
        if (at_ < in_.size() && in_[at_] == ']') ++at_;
        return "(?:(?=" + other + ")" + text + "])";
      } else {
        const char c = in_[at_++];
        text += c;
        if (c == ']') break;
      }
    }
    return text;
  }

  std::string_view in_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string pcre2_spelling(std::string_view expression) { return Rewriter(expression).run(); }

}  // namespace hk::tokenizer
