// What a model thought of a token: its log-probability, its rank, and the best alternatives.
//
// Layer: engine/generate. Always from the model's own logits, before temperature, penalties and cuts: two runs that
// sample differently agree on it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/generate/model.h"

namespace hk::engine {

struct TokenChance {
  TokenId id = 0;
  double logprob = 0;  ///< natural logarithm
};

struct TokenScore {
  TokenChance token;
  bool best = false;                      ///< no token is more likely (lowest id on a tie): the greedy choice
  std::vector<TokenChance> alternatives;  ///< the most likely tokens, best first; may hold `token`
};

/// Score of `id` under `logits`, with the `alternatives` most likely tokens. Sums in double, in an order that
/// depends on their number alone. Throws hk::Error for NaN logits.
TokenScore score_token(std::span<const float> logits, TokenId id, std::size_t alternatives);

}  // namespace hk::engine
