// A plain text as the token ids of a prompt.
//
// Layer: cli.
#pragma once

#include <string_view>
#include <vector>

#include "engine/generate/model.h"
#include "tokenizer/tokenizer.h"

namespace hk::cli {

/// `parse_special`: texts of special tokens become these tokens. `begin_token`: the vocabulary's begin token comes
/// first where the vocabulary says so. An end token is never added: it would end a prompt before it began.
std::vector<engine::TokenId> encode_prompt(const tokenizer::Tokenizer& tokenizer, std::string_view text,
                                           bool parse_special, bool begin_token);

}  // namespace hk::cli
