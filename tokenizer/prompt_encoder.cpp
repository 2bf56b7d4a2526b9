// Finds the control tokens of trusted text and encodes what lies between them as ordinary text.
#include "tokenizer/prompt_encoder.h"

#include <algorithm>
#include <utility>

namespace hk::tokenizer {
namespace {

struct Cut {
  std::size_t position;
  std::size_t length;
  TokenId id;
};

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

PromptEncoder::PromptEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!tokenizer.is_control(id)) continue;
    const std::string text(tokenizer.token_text(id));
    if (text.empty()) continue;
    // Asked from the tokenizer itself, which knows fillers and the vocabularies whose tokens swallow blanks.
    if (tokenizer.encode(text, {.add_special = false, .parse_special = true}) != std::vector<TokenId>{id}) continue;
    const bool swallows = tokenizer.encode(text + " ", {.add_special = false, .parse_special = true}).size() == 1;
    swallows_blanks_.emplace(id, swallows);
    matcher_.add(text, id, true);
  }
  matcher_.finish();
}

std::vector<TokenId> PromptEncoder::encode(std::span<const PromptSpan> spans) const {
  std::string text;
  std::vector<Cut> cuts;
  std::vector<SpecialMatcher::Hit> hits;
  for (std::size_t i = 0; i < spans.size();) {
    const std::size_t begin = text.size();
    const bool trusted = spans[i].trusted;
    for (; i < spans.size() && spans[i].trusted == trusted; ++i) text += spans[i].text;
    if (!trusted) continue;
    matcher_.scan(std::string_view(text).substr(begin), true, hits);
    std::size_t at = 0;
    for (auto hit = hits.rbegin(); hit != hits.rend(); ++hit) {  // positions descend
      if (hit->position < at) continue;
      cuts.push_back({begin + hit->position, hit->length, hit->id});
      at = hit->position + hit->length;
    }
  }
  std::vector<TokenId> ids;
  const auto add_text = [&](std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    const auto part = tokenizer_.encode(std::string_view(text).substr(begin, end - begin), {.add_special = false});
    ids.insert(ids.end(), part.begin(), part.end());
  };
  std::size_t at = 0;
  for (const Cut& cut : cuts) {
    if (cut.position < at) continue;
    add_text(at, cut.position);
    ids.push_back(cut.id);
    at = cut.position + cut.length;
    if (swallows_blanks_.at(cut.id))
      while (at < text.size() && is_blank(text[at])) ++at;
  }
  add_text(at, text.size());
  return ids;
}

}  // namespace hk::tokenizer
