// Scores of tokens against a plain log-softmax and a full sort.
#include "engine/generate/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/error.h"

namespace hk::engine {
namespace {

TEST(Logprobs, AgreeWithAPlainSoftmaxAndSort) {
  std::mt19937 random(3);
  for (const std::size_t size : {1, 2, 15, 16, 17, 5003}) {
    std::vector<float> logits(size);
    // Few different values: many ties, which the lower id wins.
    for (auto& logit : logits) logit = static_cast<float>(static_cast<int>(random() % 200) - 100) / 4;
    if (size > 2) logits[1] = -std::numeric_limits<float>::infinity();
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    std::vector<TokenId> order(size);
    std::iota(order.begin(), order.end(), 0);
    const auto logit_of = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
    std::sort(order.begin(), order.end(),
              [&](TokenId a, TokenId b) { return logit_of(a) != logit_of(b) ? logit_of(a) > logit_of(b) : a < b; });
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, size, size + 3}) {
      const auto id = static_cast<TokenId>(size == 1 ? 0 : 2 * (random() % (size / 2)));
      const auto score = score_token(logits, id, count);
      EXPECT_EQ(score.token.id, id);
      EXPECT_EQ(score.best, id == order[0]);
      EXPECT_NEAR(score.token.logprob, static_cast<double>(logit_of(id)) - std::log(sum), 3e-7);
      ASSERT_EQ(score.alternatives.size(), std::min(count, size));
      for (std::size_t i = 0; i < score.alternatives.size(); ++i) EXPECT_EQ(score.alternatives[i].id, order[i]);
    }
  }
}

TEST(Logprobs, ABrokenOutputIsAnError) {
  EXPECT_THROW(score_token(std::vector<float>{0, std::nanf("")}, 0, 1), Error);
  EXPECT_THROW(score_token(std::vector<float>{0, std::numeric_limits<float>::infinity()}, 0, 0), Error);
  EXPECT_THROW(score_token(std::vector<float>(3, -std::numeric_limits<float>::infinity()), 0, 0), Error);
}

}  // namespace
}  // namespace hk::engine
