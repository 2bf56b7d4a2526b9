// Choosing the experts of one token (see router.h).
#include "models/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hk::models {

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

void softmax(std::span<float> x) {
  const float largest = *std::ranges::max_element(x);
  float sum = 0;
  for (float& value : x) sum += value = std::exp(value - largest);
  for (float& value : x) value /= sum;
}

/// The index of the largest entry, the first of equals; `x` is not empty.
std::size_t best_of(std::span<const float> x) {
  return static_cast<std::size_t>(std::ranges::max_element(x) - x.begin());
}

/// Rules out the experts of all groups but the best.
void limit_groups(const RouterSpec& spec, std::span<float> selection) {
  const std::size_t size = selection.size() / spec.groups;
  const auto value = [&](std::size_t group) {
    float first = kNever;
    float second = kNever;
    for (const float score : selection.subspan(group * size, size)) {
      if (score > first) {
        second = first;
        first = score;
      } else {
        second = std::max(second, score);
      }
    }
    return size == 1 ? first : first + second;
  };
  // A group stays when fewer than `groups_used` others beat it. Values are taken before any group is ruled out.
  constexpr std::size_t kMaxGroups = 64;  // the builder refuses more
  float values[kMaxGroups];
  for (std::size_t g = 0; g < spec.groups; ++g) values[g] = value(g);
  for (std::size_t g = 0; g < spec.groups; ++g) {
    std::size_t better = 0;
    for (std::size_t other = 0; other < spec.groups; ++other)
      better += values[other] > values[g] || (values[other] == values[g] && other < g) ? 1 : 0;
    if (better >= spec.groups_used) std::ranges::fill(selection.subspan(g * size, size), kNever);
  }
}

}  // namespace

void choose_experts(const RouterSpec& spec, std::span<float> logits, std::span<float> scratch,
                    std::span<ChosenExpert> chosen) {
  if (spec.gating == Gating::kSoftmax) softmax(logits);
  if (spec.gating == Gating::kSigmoid) {
    for (float& logit : logits) logit = 1.0F / (1.0F + std::exp(-logit));
  }
  const std::span<float> selection = scratch.first(logits.size());
  for (std::size_t e = 0; e < logits.size(); ++e)
    selection[e] = logits[e] + (spec.selection_bias == nullptr ? 0.0F : spec.selection_bias[e]);
  if (spec.groups > 1) limit_groups(spec, selection);
  for (ChosenExpert& choice : chosen) {
    const std::size_t best = best_of(selection);
    choice = {static_cast<std::uint32_t>(best), logits[best]};
    selection[best] = kNever;
  }
  if (spec.gating == Gating::kSoftmaxOverChosen) {
    const float largest = chosen.front().weight;
    float sum = 0;
    for (ChosenExpert& choice : chosen) sum += choice.weight = std::exp(choice.weight - largest);
    for (ChosenExpert& choice : chosen) choice.weight /= sum;
  }
  if (spec.renormalise) {
    // Scores of nothing at all stay small instead of becoming infinite.
    constexpr float kSmallestSum = 6.103515625e-5F;  // 2^-14
    float sum = 0;
    for (const ChosenExpert& choice : chosen) sum += choice.weight;
    sum = std::max(sum, kSmallestSum);
    for (ChosenExpert& choice : chosen) choice.weight /= sum;
  }
  if (spec.weights_scale != 1.0F) {
    for (ChosenExpert& choice : chosen) choice.weight *= spec.weights_scale;
  }
}

}  // namespace hk::models
