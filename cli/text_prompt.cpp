// Encoding of plain prompts.
#include "cli/text_prompt.h"

namespace hk::cli {

std::vector<engine::TokenId> encode_prompt(const tokenizer::Tokenizer& tokenizer, std::string_view text,
                                           bool parse_special, bool begin_token) {
  auto ids = tokenizer.encode(text, {.add_special = false, .parse_special = parse_special});
  const auto bos = tokenizer.bos();
  const bool wants_bos = tokenizer.adds_bos() && bos && begin_token;
  if (wants_bos && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

}  // namespace hk::cli
