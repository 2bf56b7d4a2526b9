// Tokens and how likely they were, as JSON.
//
// Layer: cli.
#pragma once

#include <span>

#include "cli/json_fields.h"
#include "engine/generate/logprobs.h"
#include "tokenizer/tokenizer.h"

namespace hk::cli {

struct ScoreStyle {
  const char* text = "token";        ///< name of a token's text
  const char* alternatives = "top";  ///< name of the list of the most likely tokens
  bool bytes = false;                ///< also the text's bytes, which may be part of a character only
};

/// A list of {"id", text, "logprob", alternatives}.
Json token_scores_json(std::span<const engine::TokenScore> scores, const tokenizer::Tokenizer& tokenizer,
                       const ScoreStyle& style);

}  // namespace hk::cli
