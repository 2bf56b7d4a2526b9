// A byte-level BPE vocabulary of any size without training: bytes, a few merges, an end token, and fillers.
//
// Every text can be tokenized (mostly byte by byte), every id has a text.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/metadata_builder.h"
#include "tokenizer/byte_alphabet.h"

namespace hk::bench {

/// `tokens` >= 512; `pre` is a name of tokenizer.ggml.pre.
inline void add_vocabulary(std::size_t tokens, std::string_view pre, engine::MetadataBuilder& metadata) {
  constexpr std::int32_t kNormal = 1, kControl = 3;
  std::vector<std::string> texts;
  texts.reserve(tokens);
  for (unsigned byte = 0; byte < 256; ++byte)
    texts.emplace_back(tokenizer::alphabet_char(static_cast<std::uint8_t>(byte)));
  std::vector<std::string> merges;
  const std::string blank(tokenizer::alphabet_char(' '));
  for (const auto& [left, right] : {std::pair<std::string, std::string>{blank, "t"},
                                    {"h", "e"},
                                    {blank, "a"},
                                    {"i", "n"},
                                    {"o", "u"},
                                    {"e", "r"},
                                    {blank + "t", "he"}}) {
    merges.push_back(left + ' ' + right);
    texts.push_back(left + right);
  }
  const auto end = static_cast<std::int64_t>(texts.size());
  texts.emplace_back("<|endoftext|>");
  while (texts.size() < tokens) texts.push_back(fmt::format("{}w{}", blank, texts.size()));
  std::vector<std::int32_t> types(tokens, kNormal);
  types[static_cast<std::size_t>(end)] = kControl;

  metadata.add_string("tokenizer.ggml.model", "gpt2");
  metadata.add_string("tokenizer.ggml.pre", pre);
  metadata.add_strings("tokenizer.ggml.tokens", std::vector<std::string_view>(texts.begin(), texts.end()));
  metadata.add_strings("tokenizer.ggml.merges", std::vector<std::string_view>(merges.begin(), merges.end()));
  metadata.add_integers("tokenizer.ggml.token_type", types);
  metadata.add_integer("tokenizer.ggml.bos_token_id", end);
  metadata.add_integer("tokenizer.ggml.eos_token_id", end);
  metadata.add_boolean("tokenizer.ggml.add_bos_token", true);
}

}  // namespace hk::bench
