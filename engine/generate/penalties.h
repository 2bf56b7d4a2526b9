// What was said before makes saying it again less likely: repeat, frequency and presence penalties, and DRY.
//
// Layer: engine/generate. Keeps the token history (prompt and answer) that these rules look at.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/generate/candidates.h"
#include "engine/generate/sampler_settings.h"

namespace hk::engine {

/// Bytes of a token, for the texts that DRY does not repeat across. May be empty: then nothing breaks a repetition.
using PieceFunction = std::function<std::string(TokenId)>;

class Penalties {
 public:
  Penalties(const SamplerSettings& settings, PieceFunction piece);

  void clear();
  void accept(TokenId id);
  /// Over the last repeat_last_n tokens: a logit above 0 is divided by repeat_penalty, another multiplied with it (both
  /// make the token less likely); then frequency_penalty times the count and presence_penalty are subtracted. Same
  /// formula as the CTRL paper (Keskar 2019) and the OpenAI API.
  void apply_repetition(Candidates& candidates) const;
  /// DRY (p-e-w 2024): when the latest n tokens have occurred before, the token that followed them there loses
  /// multiplier * base ^ (n - allowed_length), for the longest such n >= allowed_length. A repetition ends at a token
  /// in which a breaker text ends, and such a token is never penalised itself.
  void apply_dry(Candidates& candidates) const;

 private:
  bool uses_repetition() const;
  bool uses_dry() const;
  bool ends_breaker(TokenId id);

  SamplerSettings settings_;
  PieceFunction piece_;
  std::vector<TokenId> history_;
  std::vector<bool> breaks_;  // whether a breaker ends in the token; filled only when DRY is on
  std::string tail_;          // end of the text so far, for breakers that span tokens
  std::size_t longest_breaker_ = 0;
  std::unordered_map<TokenId, int> counts_;  // of the penalty window
};

}  // namespace hk::engine
