// TextStream: holds back the bytes of a character until it is whole.
#include <algorithm>
#include <utility>

#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace hk::tokenizer {

TextStream::TextStream(const Tokenizer& tokenizer, bool skip_special, bool strip_leading_blank,
                       std::vector<TokenId> shown)
    : tokenizer_(tokenizer),
      skip_special_(skip_special),
      strip_(strip_leading_blank && tokenizer.adds_space_prefix()),
      shown_(std::move(shown)) {}

std::string TextStream::push(TokenId id) {
  if (skip_special_ && tokenizer_.is_control(id) && std::find(shown_.begin(), shown_.end(), id) == shown_.end())
    return {};
  std::string piece = tokenizer_.piece(id);
  if (piece.empty()) return {};
  if (strip_ && piece[0] == ' ') piece.erase(0, 1);
  strip_ = false;
  pending_ += piece;
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const std::size_t valid = valid_prefix(rest);
    out += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty() || is_cut_char(rest)) break;
    out += kReplacementCharacter;
    std::size_t wanted = 0;
    const std::size_t broken = detail::well_formed_bytes(rest, wanted);  // one mark for one cut character
    rest.remove_prefix(broken == 0 ? 1 : broken);
  }
  pending_ = std::string(rest);
  return out;
}

std::string TextStream::finish() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(kReplacementCharacter);
}

}  // namespace hk::tokenizer
