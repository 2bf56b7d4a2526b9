// Penalties over the token history.
#include "engine/generate/penalties.h"

#include <algorithm>
#include <cmath>

namespace hk::engine {
namespace {

// A penalty beyond this bans the token for all purposes; more would leave the range of float.
constexpr double kLargestPenalty = 1e30;

}  // namespace

Penalties::Penalties(const SamplerSettings& settings, PieceFunction piece)
    : settings_(settings), piece_(std::move(piece)) {
  std::erase(settings_.dry.breakers, "");  // would end in every token
  for (const auto& breaker : settings_.dry.breakers) longest_breaker_ = std::max(longest_breaker_, breaker.size());
}

bool Penalties::uses_repetition() const {
  return settings_.repeat_last_n != 0 &&
         (settings_.repeat_penalty != 1 || settings_.frequency_penalty != 0 || settings_.presence_penalty != 0);
}

bool Penalties::uses_dry() const { return settings_.dry.multiplier > 0 && settings_.dry.last_n != 0; }

void Penalties::clear() {
  history_.clear();
  breaks_.clear();
  tail_.clear();
  counts_.clear();
}

void Penalties::accept(TokenId id) {
  if (!uses_repetition() && !uses_dry()) return;
  history_.push_back(id);
  if (uses_repetition()) {
    ++counts_[id];
    const auto window = static_cast<std::size_t>(std::max(settings_.repeat_last_n, 0));
    if (settings_.repeat_last_n > 0 && history_.size() > window) {
      const auto oldest = counts_.find(history_[history_.size() - 1 - window]);
      if (--oldest->second == 0) counts_.erase(oldest);
    }
  }
  if (uses_dry()) breaks_.push_back(ends_breaker(id));
}

bool Penalties::ends_breaker(TokenId id) {
  if (!piece_ || longest_breaker_ == 0) return false;
  const std::size_t old = tail_.size();
  tail_ += piece_(id);
  bool ends = false;
  for (const auto& breaker : settings_.dry.breakers) {
    // An occurrence that ends in the new piece begins at most breaker - 1 bytes before it.
    const std::size_t from = old - std::min(old, breaker.size() - 1);
    ends = ends || tail_.find(breaker, from) != std::string::npos;
  }
  if (tail_.size() >= longest_breaker_) tail_.erase(0, tail_.size() - (longest_breaker_ - 1));
  return ends;
}

void Penalties::apply_repetition(Candidates& candidates) const {
  if (!uses_repetition()) return;
  const auto changed = [this](float logit, int count) {
    logit = logit > 0 ? logit / settings_.repeat_penalty : logit * settings_.repeat_penalty;
    return logit - static_cast<float>(count) * settings_.frequency_penalty - settings_.presence_penalty;
  };
  if (candidates.dense()) {
    for (const auto& [id, count] : counts_)
      candidates.change(id, [&, times = count](float logit) { return changed(logit, times); });
    return;
  }
  for (auto& item : candidates.list())
    if (const auto seen = counts_.find(item.id); seen != counts_.end()) item.logit = changed(item.logit, seen->second);
}

void Penalties::apply_dry(Candidates& candidates) const {
  if (!uses_dry()) return;
  const auto& dry = settings_.dry;
  const std::size_t n =
      dry.last_n < 0 ? history_.size() : std::min(history_.size(), static_cast<std::size_t>(dry.last_n));
  if (n < 2) return;
  const auto token = [&](std::size_t back) { return history_[history_.size() - 1 - back]; };
  const auto breaks = [&](std::size_t back) { return breaks_[history_.size() - 1 - back]; };
  std::size_t limit = 0;  // latest tokens that hold no breaker: a repetition cannot be longer
  while (limit < n && !breaks(limit)) ++limit;
  if (limit == 0) return;
  // Z function of the reversed history: length[i] = how many tokens before and including `i back` equal the latest
  // ones. Linear, so a text that repeats one token costs no more than another.
  std::vector<std::size_t> length(n, 0);
  std::size_t left = 0, right = 0;
  for (std::size_t i = 1; i < n; ++i) {
    std::size_t same = i < right ? std::min(right - i, length[i - left]) : 0;
    while (i + same < n && token(same) == token(i + same)) ++same;
    length[i] = same;
    if (i + same > right) left = i, right = i + same;
  }
  std::unordered_map<TokenId, std::size_t> longest;
  for (std::size_t i = 1; i < n; ++i) {
    const std::size_t repeated = std::min(length[i], limit);
    if (repeated < static_cast<std::size_t>(dry.allowed_length) || breaks(i - 1)) continue;
    auto& best = longest[token(i - 1)];  // what came next last time
    best = std::max(best, repeated);
  }
  const auto penalty = [&](std::size_t repeated) {
    const double exponent = static_cast<double>(repeated) - dry.allowed_length;
    return static_cast<float>(
        std::min(kLargestPenalty, dry.multiplier * std::pow(static_cast<double>(dry.base), exponent)));
  };
  for (const auto& [id, repeated] : longest)
    candidates.change(id, [&, lost = penalty(repeated)](float logit) { return logit - lost; });
}

}  // namespace hk::engine
