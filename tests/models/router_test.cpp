// The choice of experts from router logits: each kind of gating, biases, groups, weights.
#include "models/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hk::test {
namespace {

using models::ChosenExpert;
using models::Gating;
using models::RouterSpec;

std::vector<ChosenExpert> choose(const RouterSpec& spec, std::vector<float> logits) {
  std::vector<float> scratch(logits.size());
  std::vector<ChosenExpert> chosen(spec.used);
  models::choose_experts(spec, logits, scratch, chosen);
  return chosen;
}

std::vector<std::uint32_t> experts(const std::vector<ChosenExpert>& chosen) {
  std::vector<std::uint32_t> list;
  for (const ChosenExpert& choice : chosen) list.push_back(choice.expert);
  return list;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

TEST(Router, SoftmaxWeighsAgainstAllExperts) {
  RouterSpec spec;
  spec.used = 2;
  const auto chosen = choose(spec, {0, std::log(2.0F), std::log(4.0F), std::log(1.0F)});
  EXPECT_EQ(experts(chosen), (std::vector<std::uint32_t>{2, 1}));
  EXPECT_NEAR(chosen[0].weight, 0.5, 1e-6);
  EXPECT_NEAR(chosen[1].weight, 0.25, 1e-6);
}

TEST(Router, RenormalisedAndScaled) {
  RouterSpec spec;
  spec.used = 2;
  spec.renormalise = true;
  spec.weights_scale = 3;
  const auto chosen = choose(spec, {0, std::log(2.0F), std::log(4.0F), 0});
  EXPECT_NEAR(chosen[0].weight, 2, 1e-6);
  EXPECT_NEAR(chosen[1].weight, 1, 1e-6);
}

TEST(Router, SoftmaxOverTheChosenIsTheRenormalisedSoftmax) {
  RouterSpec late;
  late.used = 3;
  late.gating = Gating::kSoftmaxOverChosen;
  RouterSpec early = late;
  early.gating = Gating::kSoftmax;
  early.renormalise = true;
  const std::vector<float> logits{0.3F, -2, 1.5F, 0.9F, 1.4F, -0.1F};
  const auto a = choose(late, logits), b = choose(early, logits);
  ASSERT_EQ(experts(a), experts(b));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i].weight, b[i].weight, 1e-6);
}

TEST(Router, BiasSelectsButDoesNotWeigh) {
  const std::vector<float> bias{0, 0, 0, 5};
  RouterSpec spec;
  spec.used = 2;
  spec.gating = Gating::kSigmoid;
  spec.selection_bias = bias.data();
  const auto chosen = choose(spec, {1, 0.5F, 2, -3});
  EXPECT_EQ(experts(chosen), (std::vector<std::uint32_t>{3, 2}));
  EXPECT_FLOAT_EQ(chosen[0].weight, sigmoid(-3));
  EXPECT_FLOAT_EQ(chosen[1].weight, sigmoid(2));
}

TEST(Router, GroupsCountByTheirTwoBest) {
  RouterSpec spec;
  spec.used = 2;
  spec.gating = Gating::kSigmoid;
  spec.groups = 3;
  spec.groups_used = 1;
  // The single best expert stands in the first group, the best pair in the second.
  const auto chosen = choose(spec, {4, -4, -4, 2, 1, -4, 1.5F, 1, 1});
  EXPECT_EQ(experts(chosen), (std::vector<std::uint32_t>{3, 4}));
  spec.groups_used = 2;
  EXPECT_EQ(experts(choose(spec, {4, -4, -4, 2, 1, -4, 1.5F, 1, 1})), (std::vector<std::uint32_t>{3, 6}));
  spec.groups = 9;  // of one expert each
  EXPECT_EQ(experts(choose(spec, {4, -4, -4, 2, 1, -4, 1.5F, 1, 1})), (std::vector<std::uint32_t>{0, 3}));
}

TEST(Router, TiesGoToTheLowerIndexAndNansStayInRange) {
  RouterSpec spec;
  spec.used = 3;
  EXPECT_EQ(experts(choose(spec, {1, 1, 1, 1, 1})), (std::vector<std::uint32_t>{0, 1, 2}));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ChosenExpert& choice : choose(spec, {nan, nan, nan, nan})) EXPECT_LT(choice.expert, 4u);
  spec.groups = 2;
  spec.groups_used = 1;
  for (const ChosenExpert& choice : choose(spec, {nan, nan, nan, nan})) EXPECT_LT(choice.expert, 4u);
}

TEST(Router, HardlyAnyWeightIsNotBlownUp) {
  RouterSpec spec;
  spec.used = 2;
  spec.gating = Gating::kSigmoid;
  spec.renormalise = true;
  for (const ChosenExpert& choice : choose(spec, {-60, -70, -80})) EXPECT_LT(choice.weight, 1e-6F);
}

}  // namespace
}  // namespace hk::test
