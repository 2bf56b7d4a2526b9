// The removing steps of sampling; each is described in docs and in sampler_settings.h, the notes here say how it stays
// fast.
#include "engine/generate/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "engine/generate/exponential.h"

namespace hk::engine {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
// Independent partial results, so that the compiler can use vector registers without reordering float operations.
constexpr std::size_t kLanes = 16;
// Up to this k a heap of candidates beats selecting within the whole vocabulary (a random logit rarely enters the
// heap).
constexpr std::size_t kHeapLimit = 2048;

// Width and number of keep_mass's buckets: at 1/32 of a nat, 2048 of them reach to e^-64 of the best token's
// probability.
constexpr double kBucketsPerUnit = 32;
constexpr std::size_t kBuckets = 2048;
constexpr float kSmallestTemperature = 1e-6f;
constexpr float kLargestLogit = 1e30f;

bool larger(const Candidate& a, const Candidate& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; }

float largest_of(std::span<const float> values) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, kBanned);
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] = values[i + j] > lanes[j] ? values[i + j] : lanes[j];
  for (; i < values.size(); ++i) lanes[0] = std::max(lanes[0], values[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

bool all_usable(std::span<const float> values) {
  constexpr float kMax = std::numeric_limits<float>::max();
  int bad[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) bad[j] |= !(values[i + j] <= kMax);
  for (; i < values.size(); ++i) bad[0] |= !(values[i] <= kMax);
  return std::all_of(bad, bad + kLanes, [](int flag) { return flag == 0; });
}

}  // namespace

void Candidates::reset(std::span<const float> logits) {
  if (!all_usable(logits)) {
    std::size_t id = 0;
    while (logits[id] <= std::numeric_limits<float>::max()) ++id;
    throw Error(
        fmt::format("the model computed {} as the logit of token {}, which should be a finite number; its weights are "
                    "damaged or their type loses too much",
                    logits[id], id));
  }
  dense_.assign(logits.begin(), logits.end());
  items_.clear();
  dense_mode_ = true;
}

float Candidates::largest_logit() const {
  if (dense_mode_) return largest_of(dense_);
  float best = kBanned;
  for (const auto& item : items_) best = std::max(best, item.logit);
  return best;
}

TokenId Candidates::largest() const {
  const float best = largest_logit();
  if (best == kBanned) throw Error("every token is banned: no next token can be picked");
  if (dense_mode_) return static_cast<TokenId>(std::find(dense_.begin(), dense_.end(), best) - dense_.begin());
  return std::min_element(items_.begin(), items_.end(), larger)->id;
}

std::vector<Candidate>& Candidates::list() {
  if (!dense_mode_) return items_;
  items_.resize(dense_.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < dense_.size(); ++i) {  // written without a branch: banned tokens lie scattered
    items_[kept] = {static_cast<TokenId>(i), dense_[i]};
    kept += dense_[i] != kBanned;
  }
  items_.resize(kept);
  dense_mode_ = false;
  return items_;
}

std::span<const double> Candidates::probabilities() {
  list();
  const float best = largest_logit();
  weights_.resize(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i)
    weights_[i] = static_cast<double>(exponential(items_[i].logit - best));
  double lanes[kLanes] = {};
  for (std::size_t i = 0; i + kLanes <= weights_.size(); i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += weights_[i + j];
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (std::size_t i = weights_.size() / kLanes * kLanes; i < weights_.size(); ++i) sum += weights_[i];
  const double factor = 1 / sum;
  for (double& weight : weights_) weight *= factor;
  return weights_;
}

void Candidates::sort() { std::sort(list().begin(), list().end(), larger); }

void Candidates::keep_top_k(std::size_t k) {
  k = std::max<std::size_t>(k, 1);
  if (k >= size()) return;
  if (!dense_mode_ || k > kHeapLimit) {
    list();
    if (k < items_.size()) {
      std::nth_element(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(k), items_.end(), larger);
      items_.resize(k);
    }
    std::sort(items_.begin(), items_.end(), larger);
    return;
  }
  // With `larger` as the order, the front of the heap is the worst of those kept. Ids rise during the scan, so an equal
  // logit that comes later loses, as it should.
  items_.clear();
  std::size_t i = 0;
  for (; i < dense_.size() && items_.size() < k; ++i)
    if (dense_[i] != kBanned) items_.push_back({static_cast<TokenId>(i), dense_[i]});
  std::make_heap(items_.begin(), items_.end(), larger);
  const auto offer = [this](std::size_t at) {
    if (!(dense_[at] > items_.front().logit)) return;
    std::pop_heap(items_.begin(), items_.end(), larger);
    items_.back() = {static_cast<TokenId>(at), dense_[at]};
    std::push_heap(items_.begin(), items_.end(), larger);
  };
  for (; i + kLanes <= dense_.size(); i += kLanes) {
    const float worst = items_.front().logit;
    int any = 0;
    for (std::size_t j = 0; j < kLanes; ++j) any |= dense_[i + j] > worst;
    if (any != 0)
      for (std::size_t j = 0; j < kLanes; ++j) offer(i + j);
  }
  for (; i < dense_.size(); ++i) offer(i);
  std::sort(items_.begin(), items_.end(), larger);
  dense_mode_ = false;
}

void Candidates::keep_logits_from(double smallest, std::size_t min_keep) {
  const auto keeps = [smallest](float logit) { return static_cast<double>(logit) >= smallest; };
  std::size_t count = 0;
  if (dense_mode_)
    for (const float logit : dense_) count += keeps(logit);
  else
    for (const auto& item : items_) count += keeps(item.logit);
  min_keep = std::max<std::size_t>(min_keep, 1);
  if (count < min_keep) return keep_top_k(min_keep);
  if (!dense_mode_) {
    std::erase_if(items_, [&](const Candidate& item) { return !keeps(item.logit); });
    return;
  }
  items_.clear();
  for (std::size_t i = 0; i < dense_.size(); ++i)
    if (dense_[i] != kBanned && keeps(dense_[i])) items_.push_back({static_cast<TokenId>(i), dense_[i]});
  dense_mode_ = false;
}

void Candidates::keep_min_p(double p, std::size_t min_keep) {
  // p_i >= p * p_best is l_i >= l_best + log(p): no probabilities needed.
  keep_logits_from(static_cast<double>(largest_logit()) + std::log(p), min_keep);
}

void Candidates::keep_top_n_sigma(double n, std::size_t min_keep) {
  double sum = 0, squares = 0, count = 0;
  const double best = static_cast<double>(largest_logit());
  const auto add = [&](float logit) {
    if (logit == kBanned) return;
    const double distance = static_cast<double>(logit) - best;  // around a nearby value: squares stay exact enough
    sum += distance;
    squares += distance * distance;
    count += 1;
  };
  if (dense_mode_)
    for (const float logit : dense_) add(logit);
  else
    for (const auto& item : items_) add(item.logit);
  if (count == 0) return;
  const double mean = sum / count;
  const double deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
  keep_logits_from(best - n * deviation, min_keep);
}

void Candidates::keep_mass(double mass, std::size_t min_keep) {
  // Probability by distance in narrow buckets: everything before the bucket where the mass is reached stays, everything
  // after goes, and only that bucket is sorted.
  std::array<double, kBuckets> bucket_mass{};
  std::array<std::uint32_t, kBuckets> bucket_size{};
  const auto bucket_of = [this](std::size_t i) {
    return static_cast<std::size_t>(std::min(keys_[i] * kBucketsPerUnit, static_cast<double>(kBuckets - 1)));
  };
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const std::size_t bucket = bucket_of(i);
    bucket_mass[bucket] += weights_[i];
    ++bucket_size[bucket];
  }
  std::size_t border = 0, before = 0;
  double sum = 0;
  while (border + 1 < kBuckets && (sum + bucket_mass[border] < mass || before + bucket_size[border] < min_keep)) {
    sum += bucket_mass[border];
    before += bucket_size[border++];
  }
  std::vector<std::uint32_t> on_border;
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (bucket_of(i) == border) on_border.push_back(static_cast<std::uint32_t>(i));
  std::sort(on_border.begin(), on_border.end(), [this](std::uint32_t a, std::uint32_t b) {
    return keys_[a] != keys_[b] ? keys_[a] < keys_[b] : items_[a].id < items_[b].id;
  });
  std::size_t taken = 0;
  while (taken < on_border.size() && (sum < mass || before + taken < std::max<std::size_t>(min_keep, 1)))
    sum += weights_[on_border[taken++]];
  on_border.resize(taken);
  std::sort(on_border.begin(), on_border.end());
  std::size_t kept = 0, next = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const bool chosen = next < on_border.size() && on_border[next] == i;
    next += chosen;
    if (chosen || bucket_of(i) < border) items_[kept++] = items_[i];
  }
  items_.resize(kept);
}

void Candidates::keep_top_p(double p, std::size_t min_keep) {
  probabilities();
  const double best = static_cast<double>(largest_logit());
  keys_.resize(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i) keys_[i] = best - static_cast<double>(items_[i].logit);
  keep_mass(p, min_keep);
}

double Candidates::entropy() {
  // H = sum p * surprise, with the surprise of a token as that of the best one plus the distance of their logits.
  if (items_.empty()) return 0;
  const double best = static_cast<double>(largest_logit());
  double distance = 0;
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (weights_[i] > 0) distance += weights_[i] * (best - static_cast<double>(items_[i].logit));
  return distance - std::log(*std::max_element(weights_.begin(), weights_.end()));
}

void Candidates::keep_typical(double p, std::size_t min_keep) {
  probabilities();
  const double entropy = this->entropy();
  // -log(p) of a token is that of the best one plus the distance of their logits; no logarithm of each is needed.
  const double best = static_cast<double>(largest_logit());
  const double best_surprise = items_.empty() ? 0 : -std::log(*std::max_element(weights_.begin(), weights_.end()));
  keys_.resize(items_.size());
  for (std::size_t i = 0; i < items_.size(); ++i)
    keys_[i] = std::abs(best_surprise + (best - static_cast<double>(items_[i].logit)) - entropy);
  keep_mass(p, min_keep);
}

void Candidates::exclude_top_choices(double threshold, std::size_t min_keep) {
  probabilities();
  std::size_t reach = 0, least = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (weights_[i] < threshold) continue;
    if (reach++ == 0 || larger(items_[least], items_[i])) least = i;
  }
  if (reach < 2 || items_.size() - (reach - 1) < min_keep) return;
  const TokenId spared = items_[least].id;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (weights_[i] < threshold || items_[i].id == spared) items_[kept++] = items_[i];
  items_.resize(kept);
}

void Candidates::keep_surprise_up_to(double bits) {
  probabilities();
  const double smallest = std::exp2(-bits);
  std::size_t kept = 0, best = 0;
  for (std::size_t i = 1; i < items_.size(); ++i)
    if (larger(items_[i], items_[best])) best = i;
  const Candidate top = items_[best];
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (weights_[i] >= smallest) items_[kept++] = items_[i];
  if (kept == 0) items_[kept++] = top;
  items_.resize(kept);
}

void Candidates::divide_by_temperature(float temperature) {
  // Tiny temperatures must not make infinities, whose differences are no numbers. A quotient that falls to -infinity
  // has no chance anyway.
  const float divisor = std::max(temperature, kSmallestTemperature);
  if (dense_mode_)
    for (float& logit : dense_) logit = std::min(logit / divisor, kLargestLogit);
  else
    for (auto& item : items_) item.logit = std::min(item.logit / divisor, kLargestLogit);
}

void Candidates::divide_by_dynamic_temperature(float low, float high, float exponent) {
  probabilities();
  if (items_.size() < 2) return;
  const double share = std::clamp(entropy() / std::log(static_cast<double>(items_.size())), 0.0, 1.0);
  const double temperature = static_cast<double>(low) + static_cast<double>(high - low) * std::pow(share, exponent);
  divide_by_temperature(static_cast<float>(temperature));
}

std::size_t Candidates::pick(double unit) {
  probabilities();
  if (items_.empty()) throw Error("every token is banned: no next token can be picked");
  double left = unit;
  std::size_t last = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (weights_[i] <= 0) continue;
    last = i;
    left -= weights_[i];
    if (left < 0) break;
  }
  return last;  // rounding may leave a crumb after the last one: it belongs to it
}

}  // namespace hk::engine
