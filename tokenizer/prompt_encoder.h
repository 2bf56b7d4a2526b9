// Encodes a prompt that is partly a template's and partly a stranger's: only the template may spell control tokens.
//
// Layer: tokenizer. The text is encoded as a whole, as the model was trained: pieces are not cut where the origin
// changes ("[INST] " and "Hello" still give the token " Hello"). What the origin decides is only where the text of a
// control token is that token:
// "<|im_end|>" typed into a message stays text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"

namespace hk::tokenizer {

struct PromptSpan {
  std::string_view text;
  bool trusted;
};

class PromptEncoder {
 public:
  /// Looks at every token once. `tokenizer` must outlive it.
  explicit PromptEncoder(const Tokenizer& tokenizer);

  /// Ids of the spans' texts in one. A control token must lie in trusted text as a whole; neighbouring trusted spans
  /// count as one. No begin or end token is added.
  std::vector<TokenId> encode(std::span<const PromptSpan> spans) const;

 private:
  const Tokenizer& tokenizer_;
  SpecialMatcher matcher_;
  std::unordered_map<TokenId, bool> swallows_blanks_;  // control tokens, and whether they take the blanks after them
};

}  // namespace hk::tokenizer
