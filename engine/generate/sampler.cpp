// The chain of sampling steps and Mirostat.
#include "engine/generate/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "base/error.h"

namespace hk::engine {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
constexpr std::size_t kZipfTokens = 100;  // tokens the Zipf exponent is estimated from, as in the paper
constexpr float kFarthest = 87;           // a token with a logit farther below the best has no chance

std::uint64_t random_seed() {
  std::random_device device;
  // 32 bits are easy to read out and to type in again, and more seeds than anybody tries.
  return device();
}

// Least squares fit of log(p_i / p_(i+1)) = s * log((i + 2) / (i + 1)) over falling probabilities; the left side is the
// difference of the logits.
double zipf_exponent(std::span<const Candidate> best) {
  double products = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < best.size() && best.front().logit - best[i + 1].logit < kFarthest; ++i) {
    const double t = std::log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    products += t * (static_cast<double>(best[i].logit) - static_cast<double>(best[i + 1].logit));
    squares += t * t;
  }
  return squares > 0 ? products / squares : 1;
}

}  // namespace

Sampler::Sampler(SamplerSettings settings, std::size_t vocab_size, std::span<const TokenId> end_ids,
                 PieceFunction piece)
    : settings_((settings.validate(), std::move(settings))),
      vocab_size_(vocab_size),
      end_ids_(end_ids.begin(), end_ids.end()),
      penalties_(settings_, std::move(piece)),
      seed_(settings_.seed ? *settings_.seed : random_seed()),
      random_(seed_),
      surprise_limit_(2.0 * static_cast<double>(settings_.mirostat_tau)) {
  for (const auto& [id, bias] : settings_.logit_bias)
    if (id < 0 || static_cast<std::size_t>(id) >= vocab_size_)
      throw Error(fmt::format("sampling: a bias is given for token {}, but ids go from 0 to {}", id, vocab_size_ - 1),
                  ErrorKind::kUsage);
}

void Sampler::set_history(std::span<const TokenId> history) {
  penalties_.clear();
  for (const TokenId id : history) penalties_.accept(id);
}

void Sampler::apply(SamplerStep step) {
  const auto& s = settings_;
  const auto keep = static_cast<std::size_t>(s.min_keep);
  switch (step) {
    case SamplerStep::kPenalties:
      return penalties_.apply_repetition(candidates_);
    case SamplerStep::kDry:
      return penalties_.apply_dry(candidates_);
    case SamplerStep::kTopNSigma:
      if (s.top_n_sigma > 0) candidates_.keep_top_n_sigma(static_cast<double>(s.top_n_sigma), keep);
      return;
    case SamplerStep::kTopK:
      if (s.top_k > 0) candidates_.keep_top_k(static_cast<std::size_t>(std::max(s.top_k, s.min_keep)));
      return;
    case SamplerStep::kTypical:
      if (s.typical_p < 1) candidates_.keep_typical(static_cast<double>(s.typical_p), keep);
      return;
    case SamplerStep::kTopP:
      if (s.top_p < 1) candidates_.keep_top_p(static_cast<double>(s.top_p), keep);
      return;
    case SamplerStep::kMinP:
      if (s.min_p > 0) candidates_.keep_min_p(static_cast<double>(s.min_p), keep);
      return;
    case SamplerStep::kXtc:
      // The number is drawn whenever the step is on, so that the stream does not depend on the logits.
      if (s.xtc_probability > 0 && s.xtc_threshold <= 0.5f &&
          random_.next_unit() < static_cast<double>(s.xtc_probability))
        candidates_.exclude_top_choices(static_cast<double>(s.xtc_threshold), keep);
      return;
    case SamplerStep::kTemperature:
      if (s.dynamic_range > 0)
        candidates_.divide_by_dynamic_temperature(std::max(0.0f, s.temperature - s.dynamic_range),
                                                  s.temperature + s.dynamic_range, s.dynamic_exponent);
      else
        candidates_.divide_by_temperature(s.temperature);
      return;
  }
}

TokenId Sampler::sample(std::span<const float> logits) {
  if (logits.size() != vocab_size_)
    throw Error(fmt::format("sampling: {} logits were given for a vocabulary of {}", logits.size(), vocab_size_));
  candidates_.reset(logits);
  for (const auto& [id, bias] : settings_.logit_bias)
    candidates_.change(id, [added = bias](float logit) { return logit + added; });
  if (settings_.ignore_eos)
    for (const TokenId id : end_ids_) candidates_.change(id, [](float) { return kBanned; });

  if (settings_.temperature <= 0 && settings_.dynamic_range <= 0) {
    for (const SamplerStep step : settings_.order)
      if (step == SamplerStep::kPenalties || step == SamplerStep::kDry) apply(step);
    return candidates_.largest();
  }
  if (settings_.mirostat != 0) return sample_mirostat();
  for (const SamplerStep step : settings_.order) apply(step);
  return candidates_.pick(random_.next_unit()).id;
}

TokenId Sampler::sample(std::span<const float> logits, Candidates& buffers) {
  // Nothing in the candidates outlives a call.
  struct Exchange {
    Exchange(Candidates& own_ones, Candidates& others) : own(own_ones), other(others) { std::swap(own, other); }
    ~Exchange() { std::swap(own, other); }
    Candidates &own, &other;
  } exchange(candidates_, buffers);
  return sample(logits);
}

TokenId Sampler::sample_mirostat() {
  for (const SamplerStep step : settings_.order)
    if (step == SamplerStep::kPenalties || step == SamplerStep::kDry || step == SamplerStep::kTemperature) apply(step);
  const Candidates::Best best = candidates_.best_token();
  if (settings_.mirostat == 1) {
    const double s = zipf_exponent(candidates_.best(kZipfTokens)), n = static_cast<double>(candidates_.count());
    const double epsilon = s - 1;
    // k from the paper's equation; its limits (a flat or exact Zipf law) are 0 / 0, where everything is kept.
    double k = std::pow(epsilon * std::exp2(surprise_limit_) / (1 - std::pow(n, -epsilon)), 1 / s);
    if (!std::isfinite(k)) k = n;
    candidates_.keep_top_k(static_cast<std::size_t>(std::clamp(std::round(k), 1.0, n)));
  } else {
    candidates_.keep_surprise_up_to(surprise_limit_ * std::log(2.0), best);
  }
  const Candidate chosen = candidates_.pick(random_.next_unit());
  const double nats = best.surprise + static_cast<double>(best.logit) - static_cast<double>(chosen.logit);
  const double surprise = nats / std::log(2.0);
  surprise_limit_ -=
      static_cast<double>(settings_.mirostat_eta) * (surprise - static_cast<double>(settings_.mirostat_tau));
  return chosen.id;
}

}  // namespace hk::engine
