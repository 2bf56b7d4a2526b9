// The removing steps of sampling; each is described in docs and in sampler_settings.h, the notes here say how it stays
// fast.
#include "engine/generate/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

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
// Tokens looked at together: their weights stay in the first cache.
constexpr std::size_t kPiece = 1024;

// Width and number of keep_part's buckets: at 1/32 of a nat, 2048 of them reach to e^-64 of the best token's
// probability.
constexpr float kBucketsPerUnit = 32;
constexpr std::size_t kBuckets = 2048;
constexpr float kSmallestTemperature = 1e-6f;
constexpr float kLargestLogit = 1e30f;
constexpr float kSmallestLogit = std::numeric_limits<float>::lowest();

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

/// Sum of term(value) over at most kPiece values.
template <typename Term>
double sum_of(std::span<const float> values, Term term) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) lanes[j] += term(values[i + j]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (; i < values.size(); ++i) sum += term(values[i]);
  return sum;
}

/// e^(logit - best), 0 for a banned token. `best` is finite.
std::span<const float> weights_of(std::span<const float> logits, float best, std::span<float, kPiece> weights) {
  for (std::size_t i = 0; i < logits.size(); ++i) weights[i] = exponential(logits[i] - best);
  return weights.first(logits.size());
}

/// The float from which on logits are at least `smallest`; never so small that banned tokens reach it.
float reaching(double smallest) {
  const float least = static_cast<float>(std::max(smallest, static_cast<double>(kSmallestLogit)));
  return static_cast<double>(least) < smallest ? std::nextafter(least, -kBanned) : least;
}

/// Calls visit(i) for all places of the groups in which a logit is above limit().
template <typename Limit, typename Visit>
void visit_groups(std::span<const float> logits, Limit limit, Visit visit) {
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    const float below = limit();
    int any = 0;
    for (std::size_t j = 0; j < kLanes; ++j) any |= logits[i + j] > below;
    if (any == 0) continue;
    for (std::size_t j = 0; j < kLanes; ++j) visit(i + j);
  }
  for (; i < logits.size(); ++i) visit(i);
}

float just_below(float value) { return std::nextafter(value, kBanned); }

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

template <typename Visit>
void Candidates::for_pieces(Visit visit) const {
  float copied[kPiece];
  for (std::size_t begin = 0; begin < places(); begin += kPiece) {
    const std::size_t length = std::min(kPiece, places() - begin);
    if (dense_mode_) {
      visit(std::span(dense_).subspan(begin, length));
      continue;
    }
    for (std::size_t i = 0; i < length; ++i) copied[i] = items_[begin + i].logit;
    visit(std::span<const float>(copied, length));
  }
}

float Candidates::largest_logit() const {
  float best = kBanned;
  for_pieces([&](std::span<const float> logits) { best = std::max(best, largest_of(logits)); });
  return best;
}

std::size_t Candidates::count_from(float least) const {
  std::size_t count = 0;
  for_pieces([&](std::span<const float> logits) {
    std::uint32_t reach = 0;
    for (const float logit : logits) reach += logit >= least;
    count += reach;
  });
  return count;
}

std::size_t Candidates::count() const { return count_from(kSmallestLogit); }

Candidates::Mass Candidates::mass(bool with_distance) const {
  Mass mass;
  const float best = largest_logit();
  if (best == kBanned) return mass;
  float weights[kPiece], products[kPiece];
  for_pieces([&](std::span<const float> logits) {
    mass.total += sum_of(weights_of(logits, best, weights), [](float weight) { return static_cast<double>(weight); });
    if (!with_distance) return;
    // Beyond a distance of 100 the weight is 0, and infinity times 0 is no number.
    for (std::size_t i = 0; i < logits.size(); ++i) products[i] = weights[i] * std::min(best - logits[i], 100.0f);
    mass.distance += sum_of(std::span<const float>(products, logits.size()),
                            [](float product) { return static_cast<double>(product); });
  });
  return mass;
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

std::vector<Candidate> Candidates::best(std::size_t count) const {
  std::vector<Candidate> heap;  // with `larger` as the order, its front is the worst of those kept
  heap.reserve(std::min(count, places()));
  const auto offer = [&](const Candidate& item) {
    if (heap.size() == count) {
      if (!larger(item, heap.front())) return;
      std::pop_heap(heap.begin(), heap.end(), larger);
      heap.pop_back();
    }
    heap.push_back(item);
    std::push_heap(heap.begin(), heap.end(), larger);
  };
  if (count == 0) return heap;
  if (dense_mode_) {
    float limit = kBanned;  // rising ids: an equal logit that comes later loses, so only larger ones are looked at
    visit_groups(
        dense_, [&] { return limit; },
        [&](std::size_t i) {
          if (!(dense_[i] > limit)) return;
          offer({static_cast<TokenId>(i), dense_[i]});
          if (heap.size() == count) limit = heap.front().logit;
        });
  } else {
    for (const auto& item : items_) offer(item);
  }
  std::sort_heap(heap.begin(), heap.end(), larger);
  return heap;
}

void Candidates::keep_top_k(std::size_t k) {
  k = std::max<std::size_t>(k, 1);
  if (k >= places()) return;
  if (dense_mode_ && k <= kHeapLimit) {
    items_ = best(k);
    dense_mode_ = false;
    return;
  }
  list();
  if (k < items_.size()) {
    std::nth_element(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(k), items_.end(), larger);
    items_.resize(k);
  }
  std::sort(items_.begin(), items_.end(), larger);
}

void Candidates::keep_logits_from(double smallest, std::size_t min_keep) {
  const float least = reaching(smallest);
  const std::size_t count = count_from(least);
  min_keep = std::max<std::size_t>(min_keep, 1);
  if (count < min_keep) return keep_top_k(min_keep);
  if (!dense_mode_) {
    std::erase_if(items_, [&](const Candidate& item) { return item.logit < least; });
    return;
  }
  if (count > dense_.size() / 2) {  // a list of so many would be slower than all of them
    for (float& logit : dense_) logit = logit >= least ? logit : kBanned;
    return;
  }
  items_.resize(count + 1);  // what is not kept is written too: no branch, where many are kept
  std::size_t kept = 0;
  visit_groups(
      dense_, [below = just_below(least)] { return below; },
      [&](std::size_t i) {
        items_[kept] = {static_cast<TokenId>(i), dense_[i]};
        kept += dense_[i] >= least;
      });
  items_.resize(count);
  dense_mode_ = false;
}

void Candidates::keep_min_p(double p, std::size_t min_keep) {
  // p_i >= p * p_best is l_i >= l_best + log(p): no probabilities needed.
  keep_logits_from(static_cast<double>(largest_logit()) + std::log(p), min_keep);
}

void Candidates::keep_top_n_sigma(double n, std::size_t min_keep) {
  const float best = largest_logit();
  const std::size_t n_tokens = count();
  if (n_tokens == 0) return;
  double sum = 0, squares = 0;
  // Around a nearby value, so that squares stay exact enough.
  const auto distance = [best](float logit) {
    return logit == kBanned ? 0 : static_cast<double>(logit) - static_cast<double>(best);
  };
  for_pieces([&](std::span<const float> logits) {
    sum += sum_of(logits, distance);
    squares += sum_of(logits, [&](float logit) { return distance(logit) * distance(logit); });
  });
  const double mean = sum / static_cast<double>(n_tokens);
  const double deviation = std::sqrt(std::max(0.0, squares / static_cast<double>(n_tokens) - mean * mean));
  keep_logits_from(static_cast<double>(best) - n * deviation, min_keep);
}

/// Keeps the tokens whose distance from the best is nearest to `centre`, the lowest id on a tie, until they have the
/// part `p` of all weight.
void Candidates::keep_part(double p, const Mass& all, double centre, std::size_t min_keep) {
  const float largest = largest_logit();
  if (largest == kBanned) return;
  const double best = static_cast<double>(largest);
  if (dense_mode_) {
    // Those farther than this have less than half of 1 - p even if they were all there is, so the others suffice. The
    // second term: on the other side of the centre everything is at most as far as the best token is.
    const double tail = std::log(2 * static_cast<double>(places()) / ((1 - p) * all.total));
    keep_logits_from(best - std::max(tail, 2 * centre), min_keep);
  }
  list();
  // Weight by key in narrow buckets: everything before the bucket where the part is reached stays, everything after
  // goes, and only that bucket is sorted.
  const auto key_of = [largest, from = static_cast<float>(centre)](float logit) {
    return std::abs(largest - logit - from);
  };
  std::array<double, kBuckets> bucket_mass{};
  std::array<std::uint32_t, kBuckets> bucket_size{};
  std::vector<std::int16_t> buckets(items_.size());
  std::size_t done = 0;
  float buffer[kPiece];
  for_pieces([&](std::span<const float> logits) {
    std::int16_t* bucket = buckets.data() + done;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const float place = key_of(logits[i]) * kBucketsPerUnit;
      constexpr float kLast = kBuckets - 1;
      bucket[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(place < kLast ? place : kLast));
    }
    const auto weights = weights_of(logits, largest, buffer);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      bucket_mass[static_cast<std::size_t>(bucket[i])] += static_cast<double>(weights[i]);
      ++bucket_size[static_cast<std::size_t>(bucket[i])];
    }
    done += logits.size();
  });
  const double wanted = p * all.total;
  std::int16_t border = 0;
  std::size_t before = 0;
  double sum = 0;
  for (std::size_t b = 0; b + 1 < kBuckets && (sum + bucket_mass[b] < wanted || before + bucket_size[b] < min_keep);
       ++b, ++border) {
    sum += bucket_mass[b];
    before += bucket_size[b];
  }
  // Key and place in one number: keys are not negative, so their bits are in their order, and an equal key of an
  // earlier place goes first. Earlier places have larger logits (a list made by top-k) or lower ids.
  std::vector<std::uint64_t> on_border;
  for (std::size_t i = 0; i < items_.size(); ++i)
    if (buckets[i] == border)
      on_border.push_back(std::uint64_t{std::bit_cast<std::uint32_t>(key_of(items_[i].logit))} << 32 | i);
  std::sort(on_border.begin(), on_border.end());
  for (const std::uint64_t one : on_border) {
    if (sum >= wanted && before >= std::max<std::size_t>(min_keep, 1)) break;
    const std::size_t place = one & 0xffffffffu;
    sum += static_cast<double>(exponential(items_[place].logit - largest));
    ++before;
    buckets[place] = -1;  // stays
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < items_.size(); ++i) {  // without a branch: who stays is scattered
    items_[kept] = items_[i];
    kept += buckets[i] < border;
  }
  items_.resize(kept);
}

void Candidates::keep_top_p(double p, std::size_t min_keep) { keep_part(p, mass(false), 0, min_keep); }

void Candidates::keep_typical(double p, std::size_t min_keep) {
  // -log(p_i) is log(total) plus the distance, and the entropy is its mean: they differ by what the distances differ.
  const Mass all = mass(true);
  keep_part(p, all, all.total > 0 ? all.distance / all.total : 0, min_keep);
}

void Candidates::exclude_top_choices(double threshold, std::size_t min_keep) {
  const Mass all = mass(false);
  const float least = reaching(static_cast<double>(largest_logit()) + std::log(threshold * all.total));
  const std::size_t reach = count_from(least);
  if (reach < 2 || count() - (reach - 1) < min_keep) return;
  const TokenId spared = best(reach).back().id;
  const auto goes = [&](TokenId id, float logit) { return logit >= least && id != spared; };
  if (dense_mode_) {
    visit_groups(
        dense_, [below = just_below(least)] { return below; },
        [&](std::size_t i) {
          if (goes(static_cast<TokenId>(i), dense_[i])) dense_[i] = kBanned;
        });
  } else {
    std::erase_if(items_, [&](const Candidate& item) { return goes(item.id, item.logit); });
  }
}

Candidates::Best Candidates::best_token() const {
  const Mass all = mass(false);
  if (all.total <= 0) throw Error("every token is banned: no next token can be picked");
  return {largest_logit(), std::log(all.total)};
}

void Candidates::keep_surprise_up_to(double nats, const Best& best) {
  keep_logits_from(static_cast<double>(best.logit) - (nats - best.surprise), 1);
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
  const std::size_t n = count();
  if (n < 2) return;
  const Mass all = mass(true);
  const double entropy = std::log(all.total) + all.distance / all.total;
  const double share = std::clamp(entropy / std::log(static_cast<double>(n)), 0.0, 1.0);
  const double temperature = static_cast<double>(low) + static_cast<double>(high - low) * std::pow(share, exponent);
  divide_by_temperature(static_cast<float>(temperature));
}

Candidate Candidates::pick(double unit) const {
  const float best = largest_logit();
  if (best == kBanned) throw Error("every token is banned: no next token can be picked");
  std::vector<double> pieces;
  float buffer[kPiece];
  for_pieces([&](std::span<const float> logits) {
    pieces.push_back(
        sum_of(weights_of(logits, best, buffer), [](float weight) { return static_cast<double>(weight); }));
  });
  double left = unit * std::accumulate(pieces.begin(), pieces.end(), 0.0);
  // Rounding may leave a crumb after the last token with a chance: it belongs to it.
  std::size_t piece = 0, last = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i] <= 0) continue;
    piece = i;
    if (left < pieces[i]) break;
    left -= pieces[i];
  }
  const std::size_t begin = piece * kPiece, end = std::min(begin + kPiece, places());
  for (std::size_t i = begin; i < end; ++i) {
    const double weight = static_cast<double>(exponential(at(i).logit - best));
    if (weight <= 0) continue;
    last = i;
    left -= weight;
    if (left < 0) break;
  }
  return at(last);
}

}  // namespace hk::engine
