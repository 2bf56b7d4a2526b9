// Loading and encoding of SentencePiece vocabularies.
#include "tokenizer/spm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace hk::tokenizer {
namespace {

// Stands for a blank (U+0020 or U+2581) in the neighbour table, so that it is told from other characters that begin
// with E2.
constexpr std::uint8_t kBlankClass = 0xC0;  // a byte that UTF-8 never uses

std::uint8_t first_class(std::string_view character) {
  if (character == " " || character == kLowerOneEighthBlock) return kBlankClass;
  return static_cast<std::uint8_t>(character.front());
}

std::uint8_t last_class(std::string_view character) {
  if (character == " " || character == kLowerOneEighthBlock) return kBlankClass;
  return static_cast<std::uint8_t>(character.back());
}

std::size_t step(std::string_view text, std::size_t at) {
  return std::max<std::size_t>(decode_char(text.substr(at)).length, 1);
}

}  // namespace

SpmTokenizer::SpmTokenizer(Vocabulary&& given)
    : FamilyTokenizer(std::move(given), {.add_bos = true,
                                         .space_prefix = given.source().add_space_prefix.value_or(true),
                                         .fold_blanks = !given.source().add_space_prefix.value_or(true)}) {
  const VocabularySource& source = vocabulary().source();
  if (source.scores.size() != vocabulary().size())
    throw Error(
        fmt::format("{}: a vocabulary of model 'llama' needs one score a token: tokenizer.ggml.scores has {} entries, "
                    "tokenizer.ggml.tokens has {}",
                    source.file, source.scores.size(), vocabulary().size()));
  for (TokenId id = 0; static_cast<std::size_t>(id) < vocabulary().size(); ++id) {
    if (vocabulary().type(id) != TokenType::kNormal) continue;
    const std::string_view text = vocabulary().text(id);
    longest_normal_ = std::max(longest_normal_, text.size());
    note_neighbours(text);
  }
}

void SpmTokenizer::note_neighbours(std::string_view text) {
  if (text.empty()) return;
  std::string_view left = text.substr(0, step(text, 0));
  for (std::size_t at = left.size(); at < text.size();) {
    const std::string_view right = text.substr(at, step(text, at));
    neighbours_.set(std::size_t{last_class(left)} * 256 + first_class(right));
    at += right.size();
    left = right;
  }
}

bool SpmTokenizer::may_join(std::string_view left, std::string_view right) const {
  return neighbours_[std::size_t{last_class(left)} * 256 + first_class(right)];
}

std::uint32_t SpmTokenizer::priority(TokenId id) const {
  // Floats in an order of unsigned numbers, highest score first. -0 counts as 0, a NaN as the lowest score.
  float score = vocabulary().source().scores[static_cast<std::size_t>(id)] + 0.0F;
  if (std::isnan(score)) score = -HUGE_VALF;
  const auto bits = std::bit_cast<std::uint32_t>(score);
  const std::uint32_t ascending = (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
  return ~ascending;
}

void SpmTokenizer::encode_segment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
  if (adds_space_prefix()) {
    scratch.segment.assign(1, ' ').append(text);
    text = scratch.segment;
  }
  std::size_t begin = 0;
  std::string_view left = text.substr(0, step(text, 0));
  for (std::size_t at = left.size(); at < text.size();) {
    const std::string_view right = text.substr(at, step(text, at));
    if (!may_join(left, right)) {
      encode_word(text.substr(begin, at - begin), scratch, out);
      begin = at;
    }
    at += right.size();
    left = right;
  }
  encode_word(text.substr(begin), scratch, out);
}

void SpmTokenizer::encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  scratch.cache.append(word, out, [&] { merge_word(word, scratch, out); });
}

void SpmTokenizer::merge_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  scratch.word.clear();
  append_replaced(word, " ", kLowerOneEighthBlock, scratch.word);
  const std::string_view text = scratch.word;
  scratch.merges.clear();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = step(text, at);
    scratch.merges.add(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       vocabulary().find_normal(text.substr(at, length)));
    at += length;
  }
  scratch.merges.merge([&](const Symbol& left, const Symbol& right) -> MergeRule {
    const std::size_t length = std::size_t{left.length} + right.length;
    if (length > longest_normal_) return {};
    const TokenId id = vocabulary().find_normal(text.substr(left.begin, length));
    if (id == kNoToken) return {};
    return {priority(id), id};
  });
  scratch.merges.for_each([&](const Symbol& symbol) {
    if (symbol.id != kNoToken) {
      out.push_back(symbol.id);
      return;
    }
    const std::string_view character = text.substr(symbol.begin, symbol.length);
    const bool all_bytes = std::all_of(character.begin(), character.end(), [this](char c) {
      return vocabulary().byte_token(static_cast<std::uint8_t>(c)) != kNoToken;
    });
    if (all_bytes) {
      for (const char c : character) out.push_back(vocabulary().byte_token(static_cast<std::uint8_t>(c)));
    } else if (vocabulary().unknown) {
      out.push_back(*vocabulary().unknown);
    }
  });
}

void SpmTokenizer::append_normal(std::string_view text, std::string& out) const {
  append_replaced(text, kLowerOneEighthBlock, " ", out);
}

}  // namespace hk::tokenizer
