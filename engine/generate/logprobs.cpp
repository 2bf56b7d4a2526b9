// Log-softmax of one row.
#include "engine/generate/logprobs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/generate/exponential.h"

namespace hk::engine {
namespace {

// Independent sums, so that the compiler can use vector registers without reordering float operations.
constexpr std::size_t kLanes = 16;

std::vector<TokenChance> best_tokens(std::span<const float> logits, std::size_t count, double log_sum) {
  struct Best {
    float logit;
    TokenId id;
  };
  const auto better = [](const Best& a, const Best& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; };
  std::vector<Best> heap;  // its front is the worst of those kept; ids rise, so an equal logit that comes later loses
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (heap.size() == count && !(logits[i] > heap.front().logit)) continue;
    if (heap.size() == count) {
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.pop_back();
    }
    heap.push_back({logits[i], static_cast<TokenId>(i)});
    std::push_heap(heap.begin(), heap.end(), better);
  }
  std::sort_heap(heap.begin(), heap.end(), better);
  std::vector<TokenChance> best;
  for (const Best& one : heap) best.push_back({one.id, static_cast<double>(one.logit) - log_sum});
  return best;
}

/// Sum of e^(logit - largest).
double sum_of_weights(std::span<const float> logits, float largest) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += static_cast<double>(exponential(logits[i + j] - largest));
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < logits.size(); ++i) sum += static_cast<double>(exponential(logits[i] - largest));
  return sum;
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
  const double log_sum = static_cast<double>(largest) + std::log(sum_of_weights(logits, largest));
  TokenScore score;
  score.token = {id, static_cast<double>(logits[static_cast<std::size_t>(id)]) - log_sum};
  score.best = id == best;
  if (alternatives > 0) score.alternatives = best_tokens(logits, alternatives, log_sum);
  return score;
}

}  // namespace hk::engine
