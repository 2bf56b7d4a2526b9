// Log-softmax of one row.
#include "engine/generate/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace hk::engine {
namespace {

std::vector<TokenChance> best_tokens(std::span<const float> logits, std::size_t count, double log_sum) {
  std::vector<TokenId> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i);
  count = std::min(count, ids.size());
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(),
                    [&](TokenId a, TokenId b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  std::vector<TokenChance> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back({ids[i], static_cast<double>(logit(ids[i])) - log_sum});
  return best;
}

}  // namespace

TokenScore score_token(std::span<const float> logits, TokenId id, std::size_t alternatives) {
  float largest = -std::numeric_limits<float>::infinity();
  TokenId best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) throw Error("the model's output is not a number (NaN): the weights may be damaged");
    if (logits[i] <= largest) continue;
    largest = logits[i];
    best = static_cast<TokenId>(i);
  }
  if (std::isinf(largest)) throw Error("the model's output is infinite: the weights may be damaged");
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(largest));
  const double log_sum = static_cast<double>(largest) + std::log(sum);
  TokenScore score;
  score.token = {id, static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum};
  score.best = id == best;
  if (alternatives > 0) score.alternatives = best_tokens(logits, alternatives, log_sum);
  return score;
}

}  // namespace hk::engine
