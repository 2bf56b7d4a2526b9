// Each sampling step against a slow, obvious version of its definition; the chain's promises.
#include "engine/generate/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "engine/generate/exponential.h"

namespace hk::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
using Logits = std::vector<float>;
using Ids = std::set<TokenId>;

// Half of the values are rounded, so that ties occur.
Logits random_logits(std::size_t n, unsigned seed, float spread = 4) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, spread);
  Logits logits(n);
  for (auto& logit : logits) {
    logit = normal(engine);
    if (engine() % 2 == 0) logit = std::round(logit);
    if (engine() % 50 == 0) logit = -kInf;
  }
  if (n > 0) logits[engine() % n] = spread;  // never all banned
  return logits;
}

struct Entry {
  TokenId id;
  double logit;
  double p;
};

// All tokens with their exact probabilities, best first.
std::vector<Entry> distribution(const Logits& logits) {
  std::vector<Entry> entries;
  double best = -INFINITY, sum = 0;
  for (const float logit : logits) best = std::max(best, static_cast<double>(logit));
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] != -kInf) entries.push_back({static_cast<TokenId>(i), static_cast<double>(logits[i]), 0});
  for (auto& entry : entries) sum += entry.p = std::exp(entry.logit - best);
  for (auto& entry : entries) entry.p /= sum;
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.logit != b.logit ? a.logit > b.logit : a.id < b.id; });
  return entries;
}

Ids ids_of(Candidates& candidates) {
  Ids ids;
  for (const auto& item : candidates.list()) ids.insert(item.id);
  EXPECT_EQ(ids.size(), candidates.list().size());
  return ids;
}

template <typename Step>
Ids after(const Logits& logits, bool as_list, Step step) {
  Candidates candidates;
  candidates.reset(logits);
  if (as_list) candidates.list();
  step(candidates);
  return ids_of(candidates);
}

// Runs `check(logits, as_list)` on many shapes; both forms of the candidates must agree with the definition.
template <typename Check>
void for_many(Check check) {
  unsigned seed = 1;
  for (const std::size_t n : {1, 2, 5, 16, 17, 100, 1000, 5003})
    for (const float spread : {0.01f, 1.0f, 4.0f, 20.0f})
      for (const bool as_list : {false, true}) {
        SCOPED_TRACE(testing::Message() << n << " logits, spread " << spread << ", list " << as_list);
        check(random_logits(n, seed++, spread), as_list);
      }
}

TEST(Steps, TopK) {
  for_many([](const Logits& logits, bool as_list) {
    const auto all = distribution(logits);
    for (const std::size_t k : {1, 2, 40, 3000}) {
      Ids expected;
      for (std::size_t i = 0; i < std::min(k, all.size()); ++i) expected.insert(all[i].id);
      EXPECT_EQ(after(logits, as_list, [&](Candidates& c) { c.keep_top_k(k); }), expected) << k;
    }
  });
}

TEST(Steps, TopKIsSortedBestFirst) {
  Candidates candidates;
  candidates.reset(random_logits(3000, 5));
  candidates.keep_top_k(50);
  const auto& list = candidates.list();
  for (std::size_t i = 1; i < list.size(); ++i)
    EXPECT_TRUE(list[i - 1].logit > list[i].logit ||
                (list[i - 1].logit == list[i].logit && list[i - 1].id < list[i].id));
}

TEST(Steps, TopP) {
  for_many([](const Logits& logits, bool as_list) {
    const auto all = distribution(logits);
    for (const double p : {0.0, 0.3, 0.95, 0.999}) {
      Ids expected;
      double sum = 0;
      for (const auto& entry : all) {
        expected.insert(entry.id);
        if ((sum += entry.p) >= p) break;
      }
      const Ids got = after(logits, as_list, [&](Candidates& c) { c.keep_top_p(p, 1); });
      // Float exponentials may move the border by one token when the sum falls on it.
      EXPECT_NEAR(static_cast<double>(got.size()), static_cast<double>(expected.size()), 1) << p;
      EXPECT_TRUE(std::includes(got.begin(), got.end(), expected.begin(), expected.end()) ||
                  std::includes(expected.begin(), expected.end(), got.begin(), got.end()));
    }
  });
}

TEST(Steps, MinP) {
  for_many([](const Logits& logits, bool as_list) {
    const auto all = distribution(logits);
    for (const double p : {0.001, 0.05, 0.5, 1.0}) {
      Ids expected;
      for (const auto& entry : all)
        if (entry.logit >= all.front().logit + std::log(p)) expected.insert(entry.id);
      EXPECT_EQ(after(logits, as_list, [&](Candidates& c) { c.keep_min_p(p, 1); }), expected) << p;
    }
  });
}

TEST(Steps, TopNSigma) {
  for_many([](const Logits& logits, bool as_list) {
    const auto all = distribution(logits);
    double mean = 0, variance = 0;
    for (const auto& entry : all) mean += entry.logit / static_cast<double>(all.size());
    for (const auto& entry : all)
      variance += (entry.logit - mean) * (entry.logit - mean) / static_cast<double>(all.size());
    for (const double n : {0.7, 1.3, 3.1}) {
      Ids expected;
      for (const auto& entry : all)
        if (entry.logit >= all.front().logit - n * std::sqrt(variance)) expected.insert(entry.id);
      EXPECT_EQ(after(logits, as_list, [&](Candidates& c) { c.keep_top_n_sigma(n, 1); }), expected) << n;
    }
  });
}

TEST(Steps, Typical) {
  for_many([](const Logits& logits, bool as_list) {
    auto all = distribution(logits);
    double entropy = 0;
    for (const auto& entry : all)
      if (entry.p > 0) entropy -= entry.p * std::log(entry.p);
    std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      return std::abs(-std::log(a.p) - entropy) < std::abs(-std::log(b.p) - entropy);
    });
    double full = 0;
    std::size_t expected = 0;
    while (expected < all.size() && full < 0.6) full += all[expected++].p;
    const Ids got = after(logits, as_list, [&](Candidates& c) { c.keep_typical(0.6, 1); });
    // Equal distances come in another order here, so compare what was promised: mass and closeness.
    double mass = 0, farthest = 0;
    for (const auto& entry : all)
      if (got.contains(entry.id)) {
        mass += entry.p;
        farthest = std::max(farthest, std::abs(-std::log(entry.p) - entropy));
      }
    EXPECT_GE(mass, 0.6 - 1e-5);
    EXPECT_LE(farthest, std::abs(-std::log(all[expected - 1].p) - entropy) + 1e-4);
    EXPECT_NEAR(static_cast<double>(got.size()), static_cast<double>(expected),
                1 + 0.01 * static_cast<double>(expected));
  });
}

// The whole vocabulary of a large model: what is left out before anything is sorted must not be missed.
TEST(Steps, TopPAndTypicalAreExactInALargeVocabulary) {
  for (const float spread : {0.0f, 0.3f, 3.0f, 9.0f}) {
    const Logits logits = random_logits(151936, 77, spread);
    const auto all = distribution(logits);
    double entropy = 0;
    for (const auto& entry : all)
      if (entry.p > 0) entropy -= entry.p * std::log(entry.p);
    for (const double p : {0.01, 0.5, 0.9, 0.999, 0.9999999}) {
      for (const bool typical : {false, true}) {
        SCOPED_TRACE(testing::Message() << "spread " << spread << ", p " << p << ", typical " << typical);
        auto order = all;
        const auto key = [&](const Entry& entry) {
          return typical ? std::abs(-std::log(entry.p) - entropy) : -entry.logit;
        };
        std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
        std::size_t expected = 0;
        for (double sum = 0; expected < order.size() && sum < p;) sum += order[expected++].p;
        const Ids got =
            after(logits, false, [&](Candidates& c) { typical ? c.keep_typical(p, 1) : c.keep_top_p(p, 1); });
        double mass = 0, farthest = -INFINITY;
        for (const auto& entry : all)
          if (got.contains(entry.id)) mass += entry.p, farthest = std::max(farthest, key(entry));
        // Weights are floats: the border may lie where the sum differs by some 1e-7 of it.
        EXPECT_GE(mass, p - 2e-7);
        EXPECT_LE(farthest, key(order[expected - 1]) + 1e-4);
        double before = mass;
        for (const auto& entry : all)
          if (got.contains(entry.id) && key(entry) > farthest - 1e-5) before -= entry.p;
        EXPECT_LT(before, p + 2e-7) << "more is kept than needed";
      }
    }
  }
}

TEST(Steps, ExcludeTopChoices) {
  for_many([](const Logits& logits, bool as_list) {
    const auto all = distribution(logits);
    const double threshold = 0.1;
    std::size_t reach = 0;
    for (const auto& entry : all) {
      if (std::abs(entry.p - threshold) < 1e-6) return;  // rounding decides
      reach += entry.p >= threshold;
    }
    Ids expected;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (reach < 2 || i + 1 >= reach) expected.insert(all[i].id);
    EXPECT_EQ(after(logits, as_list, [&](Candidates& c) { c.exclude_top_choices(threshold, 0); }), expected);
  });
}

TEST(Steps, SurpriseLimit) {
  for_many([](const Logits& logits, bool as_list) {
    const auto all = distribution(logits);
    for (const double bits : {0.0, 2.3, 7.7}) {
      Ids expected;
      for (const auto& entry : all)
        if (-std::log2(entry.p) <= bits) expected.insert(entry.id);
      if (expected.empty()) expected.insert(all.front().id);
      const Ids got =
          after(logits, as_list, [&](Candidates& c) { c.keep_surprise_up_to(bits * std::log(2), c.best_token()); });
      // A group of equal logits may sit exactly on the border; otherwise the sets are equal.
      if (got != expected) {
        Ids difference;
        std::set_symmetric_difference(got.begin(), got.end(), expected.begin(), expected.end(),
                                      std::inserter(difference, difference.end()));
        for (const auto& entry : all)
          if (difference.contains(entry.id)) {
            EXPECT_NEAR(-std::log2(entry.p), bits, 1e-5);
          }
      }
    }
  });
}

TEST(Steps, MinKeepHoldsBackRemovals) {
  const Logits logits = {10, 1, 0, -1, 5, -kInf};
  using C = Candidates;
  EXPECT_EQ(after(logits, false, [](C& c) { c.keep_min_p(1, 3); }), (Ids{0, 4, 1}));
  EXPECT_EQ(after(logits, false, [](C& c) { c.keep_top_p(0.1, 2); }), (Ids{0, 4}));
  EXPECT_EQ(after(logits, true, [](C& c) { c.keep_top_n_sigma(0.01, 4); }), (Ids{0, 4, 1, 2}));
  EXPECT_EQ(after({1, 1, 1}, true, [](C& c) { c.exclude_top_choices(0.1, 2); }), (Ids{0, 1, 2}));
}

TEST(Steps, DynamicTemperature) {
  // Equal chances: largest entropy, highest temperature. One certain token: lowest.
  Candidates flat;
  flat.reset(Logits{2, 2, 2, 2});
  flat.divide_by_dynamic_temperature(0.5f, 1.5f, 1);
  EXPECT_NEAR(flat.list()[0].logit, 2 / 1.5f, 1e-6f);
  Candidates sharp;
  sharp.reset(Logits{100, 0, 0, 0});
  sharp.divide_by_dynamic_temperature(0.5f, 1.5f, 1);
  EXPECT_NEAR(sharp.list()[0].logit, 200, 1e-3);
  Candidates middle;
  const Logits logits = {1, 0.5f, -1, 2, 0};
  middle.reset(logits);
  middle.divide_by_dynamic_temperature(0.2f, 2.0f, 1.7f);
  double entropy = 0;
  for (const auto& entry : distribution(logits)) entropy -= entry.p * std::log(entry.p);
  const double temperature = 0.2 + 1.8 * std::pow(entropy / std::log(5.0), 1.7);
  EXPECT_NEAR(middle.list()[3].logit, 2 / temperature, 1e-4);
}

SamplerSettings plain() {
  SamplerSettings settings;
  settings.temperature = 1;
  settings.top_k = 0;
  settings.top_p = 1;
  settings.min_p = 0;
  settings.seed = 7;
  return settings;
}

// Ids of `n` draws from the same logits.
std::vector<TokenId> draws(const SamplerSettings& settings, const Logits& logits, int n) {
  Sampler sampler(settings, logits.size());
  std::vector<TokenId> ids;
  for (int i = 0; i < n; ++i) {
    ids.push_back(sampler.sample(logits));
    sampler.accept(ids.back());
  }
  return ids;
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const Logits logits = {0, 1, 2, -1, -kInf, 1.5f};
  SamplerSettings settings = plain();
  settings.temperature = 0.7f;
  constexpr int kDraws = 40000;
  std::map<TokenId, int> counts;
  for (const TokenId id : draws(settings, logits, kDraws)) ++counts[id];
  Logits divided = logits;
  for (auto& logit : divided) logit /= 0.7f;
  for (const auto& entry : distribution(divided)) {
    const double expected = entry.p * kDraws;
    EXPECT_NEAR(counts[entry.id], expected, 5 * std::sqrt(expected) + 1) << entry.id;
  }
  EXPECT_EQ(counts.count(4), 0u);
}

TEST(Sampler, SameSeedSameIds) {
  const Logits logits = random_logits(500, 3, 1);
  SamplerSettings settings;
  settings.seed = 42;
  const auto first = draws(settings, logits, 200);
  EXPECT_EQ(draws(settings, logits, 200), first);
  settings.seed = 43;
  EXPECT_NE(draws(settings, logits, 200), first);
}

TEST(Sampler, ARandomSeedCanBeAskedForAndRepeated) {
  const Logits logits = random_logits(500, 3, 1);
  Sampler random(SamplerSettings{}, logits.size());
  SamplerSettings again;
  again.seed = random.seed();
  Sampler repeated(again, logits.size());
  for (int i = 0; i < 50; ++i) ASSERT_EQ(random.sample(logits), repeated.sample(logits));
}

TEST(Sampler, TheExponentialIsThatOfTheLibrary) {
  for (float x = 0; x > -87; x -= 0.00137f) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(exponential(x)), exact, 2 * 0x1p-23 * exact) << x;  // two units in the last place
  }
  EXPECT_EQ(exponential(0), 1);
  EXPECT_EQ(exponential(-88), 0);
  EXPECT_EQ(exponential(-kInf), 0);
}

TEST(Sampler, APickIsWhereTheCumulatedProbabilityPasses) {
  for_many([](const Logits& logits, bool as_list) {
    Candidates candidates;
    candidates.reset(logits);
    if (as_list) candidates.list();
    auto by_id = distribution(logits);
    std::sort(by_id.begin(), by_id.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    for (int step = 0; step < 64; ++step) {
      const double unit = step / 63.0 * (1 - 0x1p-53);
      const TokenId id = candidates.pick(unit).id;
      double before = 0;
      std::size_t i = 0;
      for (; by_id[i].id != id; ++i) before += by_id[i].p;
      ASSERT_GT(by_id[i].p, 0);
      // The exponentials are floats.
      ASSERT_LE(before, unit + 1e-6);
      ASSERT_GE(before + by_id[i].p, unit - 1e-6);
    }
  });
}

TEST(Sampler, TheRandomStreamIsPinned) {
  RandomStream stream(0);  // published first outputs of SplitMix64 for seed 0
  EXPECT_EQ(stream.next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(stream.next(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(stream.next(), 0x06c45d188009454fu);
}

TEST(Sampler, TemperatureZeroIsTheLargestWithTheLowestId) {
  SamplerSettings settings;
  settings.temperature = 0;
  EXPECT_EQ(draws(settings, {1, 3, 3, 2}, 3), (std::vector<TokenId>{1, 1, 1}));
  settings.xtc_probability = 1;
  settings.typical_p = 0.1f;
  EXPECT_EQ(draws(settings, {3, 3, 3, 2}, 1), std::vector<TokenId>{0});
}

TEST(Sampler, TinyTemperaturesAreGreedyNotNan) {
  for (const float temperature : {1e-30f, 1e-6f, 1e-3f}) {
    SamplerSettings settings = plain();
    settings.temperature = temperature;
    EXPECT_EQ(draws(settings, {-5e30f, 1e5f, 2e5f, -kInf, 3e38f}, 2), (std::vector<TokenId>{4, 4})) << temperature;
  }
  SamplerSettings wide = plain();
  wide.dynamic_range = 5;  // reaches below zero
  EXPECT_EQ(draws(wide, {0, 900}, 1), std::vector<TokenId>{1});
}

TEST(Sampler, NotANumberIsAnError) {
  for (const float bad : {std::nanf(""), kInf})
    for (const std::size_t at : {0, 15, 16, 20}) {
      Logits logits(21, 0.5f);
      logits[at] = bad;
      for (const float temperature : {0.0f, 0.8f}) {
        SamplerSettings settings;
        settings.temperature = temperature;
        Sampler sampler(settings, logits.size());
        try {
          sampler.sample(logits);
          FAIL() << at;
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("token " + std::to_string(at)), std::string::npos) << error.what();
        }
      }
    }
}

TEST(Sampler, NothingLeftIsAnError) {
  for (const float temperature : {0.0f, 0.8f})
    for (const int mirostat : {0, 1, 2}) {
      SamplerSettings settings;
      settings.temperature = temperature;
      settings.mirostat = mirostat;
      Sampler sampler(settings, 20);
      EXPECT_THROW(sampler.sample(Logits(20, -kInf)), Error);
    }
  EXPECT_THROW(Sampler(SamplerSettings{}, 3).sample(Logits{1, 2}), Error);
}

TEST(Sampler, BiasAndIgnoreEos) {
  SamplerSettings settings;
  settings.temperature = 0;
  settings.logit_bias = {{2, -kInf}, {0, 1.5f}};
  Sampler sampler(settings, 4, std::vector<TokenId>{3});
  EXPECT_EQ(sampler.sample(Logits{1, 2, 5, 0}), 0);
  EXPECT_EQ(sampler.sample(Logits{1, 2, 5, 9}), 3);
  settings.ignore_eos = true;
  Sampler endless(settings, 4, std::vector<TokenId>{3});
  EXPECT_EQ(endless.sample(Logits{1, 2, 5, 9}), 0);
  settings.logit_bias = {{4, 1}};
  EXPECT_THROW(Sampler(settings, 4), Error);
}

TEST(Penalties, RepeatFrequencyPresenceAndWindow) {
  SamplerSettings settings;
  settings.repeat_last_n = 3;
  settings.repeat_penalty = 2;
  settings.frequency_penalty = 0.25f;
  settings.presence_penalty = 0.5f;
  for (const bool as_list : {false, true}) {
    Penalties penalties(settings, {});
    for (const TokenId id : {4, 1, 0, 1}) penalties.accept(id);  // 4 has left the window
    Candidates candidates;
    candidates.reset(Logits{2, -2, 3, 4, 5});
    if (as_list) candidates.list();
    penalties.apply_repetition(candidates);
    auto& list = candidates.list();
    EXPECT_FLOAT_EQ(list[0].logit, 2 / 2.0f - 0.25f - 0.5f);
    EXPECT_FLOAT_EQ(list[1].logit, -2 * 2.0f - 2 * 0.25f - 0.5f);
    EXPECT_FLOAT_EQ(list[2].logit, 3);
    EXPECT_FLOAT_EQ(list[4].logit, 5);
  }
}

TEST(Penalties, WholeHistoryWithMinusOne) {
  SamplerSettings settings;
  settings.temperature = 0;
  settings.repeat_last_n = -1;
  settings.presence_penalty = 100;
  Sampler sampler(settings, 50);
  Logits logits(50);
  std::iota(logits.rbegin(), logits.rend(), 0.0f);
  for (TokenId id = 0; id < 50; ++id) {  // every token once, best first
    ASSERT_EQ(sampler.sample(logits), id);
    sampler.accept(id);
  }
  sampler.set_history({});
  EXPECT_EQ(sampler.sample(logits), 0);
}

// The published rule of DRY, quadratic and plain.
std::map<TokenId, double> dry_by_definition(const std::vector<TokenId>& history, const std::set<TokenId>& breakers,
                                            const DrySettings& dry) {
  std::map<TokenId, double> penalty;
  std::map<TokenId, std::size_t> longest;
  const std::size_t n = history.size();
  for (std::size_t i = 0; i + 1 < n; ++i) {
    std::size_t same = 0;
    while (same <= i && history[i - same] == history[n - 1 - same] && !breakers.contains(history[i - same])) ++same;
    const TokenId next = history[i + 1];
    if (same > 0 && !breakers.contains(next)) longest[next] = std::max(longest[next], same);
  }
  for (const auto& [id, length] : longest)
    if (length >= static_cast<std::size_t>(dry.allowed_length))
      penalty[id] = dry.multiplier * std::pow(dry.base, static_cast<double>(length) - dry.allowed_length);
  return penalty;
}

TEST(Penalties, DryByDefinition) {
  std::mt19937 engine(11);
  const auto piece = [](TokenId id) {
    return id == 0 ? std::string("\n") : std::string(1, static_cast<char>('a' + id));
  };
  for (int round = 0; round < 300; ++round) {
    SamplerSettings settings;
    settings.dry.multiplier = 0.8f;
    settings.dry.allowed_length = 1 + static_cast<int>(engine() % 3);
    Penalties penalties(settings, piece);
    std::vector<TokenId> history(engine() % 60);
    const unsigned alphabet = 2 + engine() % 4;
    for (auto& id : history) id = static_cast<TokenId>(engine() % 8 == 0 ? 0 : engine() % alphabet);
    for (const TokenId id : history) penalties.accept(id);
    Candidates candidates;
    candidates.reset(Logits(8, 1));
    penalties.apply_dry(candidates);
    const auto expected = dry_by_definition(history, {0}, settings.dry);
    for (const auto& item : candidates.list()) {
      const auto found = expected.find(item.id);
      const double lost = found == expected.end() ? 0 : found->second;
      ASSERT_NEAR(item.logit, 1 - lost, 1e-4 * (1 + lost)) << round << " token " << item.id;
    }
  }
}

TEST(Penalties, DryBreakerAcrossTokensAndLongRepetitions) {
  SamplerSettings settings;
  settings.dry.multiplier = 1;
  settings.dry.breakers = {"END", ""};
  const auto piece = [](TokenId id) {
    return std::vector<std::string>{"a", "b", "E", "ND", "N"}[static_cast<std::size_t>(id)];
  };
  const auto loses = [&](std::vector<TokenId> history, TokenId id) {
    Penalties penalties(settings, piece);
    for (const TokenId token : history) penalties.accept(token);
    Candidates candidates;
    candidates.reset(Logits(5, 0));
    penalties.apply_dry(candidates);
    return -candidates.list()[static_cast<std::size_t>(id)].logit;
  };
  EXPECT_GT(loses({0, 1, 4, 0, 0, 1}, 4), 0);        // "ab" was followed by N
  EXPECT_EQ(loses({0, 2, 3, 1, 0, 2, 3}, 1), 0);     // "E" + "ND" ends a repetition
  EXPECT_EQ(loses({0, 1, 2, 3, 4, 0, 1, 2}, 3), 0);  // the token that completes the breaker is free
  const std::vector<TokenId> endless(3000, 0);
  EXPECT_GE(loses(endless, 0), 1e29f);  // huge, yet finite
  EXPECT_TRUE(std::isfinite(loses(endless, 0)));
  settings.dry.last_n = 2;
  EXPECT_EQ(loses({0, 1, 4, 0, 0, 1}, 4), 0);  // outside of the window
}

TEST(Sampler, OrderIsRespected) {
  // At temperature 4 before min-p nothing is cut; after it only the best remains.
  const Logits logits = {4, 0, 0.5f, 0.1f};
  SamplerSettings settings = plain();
  settings.min_p = 0.3f;
  settings.temperature = 4;
  settings.order = parse_sampler_order("temperature;min_p");
  const auto hot = draws(settings, logits, 100);
  EXPECT_EQ(Ids(hot.begin(), hot.end()), (Ids{0, 1, 2, 3}));
  settings.order = parse_sampler_order("min_p,temperature");
  EXPECT_EQ(draws(settings, logits, 100), std::vector<TokenId>(100, 0));
}

TEST(Settings, NamesGoBothWays) {
  const SamplerSettings settings;
  std::string text;
  for (const auto step : settings.order) text += std::string(sampler_step_name(step)) + ";";
  EXPECT_EQ(parse_sampler_order(text), settings.order);
  EXPECT_THROW(parse_sampler_order("top_k;magic"), Error);
  EXPECT_THROW(parse_sampler_order("top_k;top_k"), Error);
  EXPECT_TRUE(parse_sampler_order("").empty());
}

TEST(Settings, ImpossibleValuesAreRefusedByName) {
  const auto refused = [](auto change, std::string_view name) {
    SamplerSettings settings;
    change(settings);
    try {
      settings.validate();
      ADD_FAILURE() << name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string_view(error.what()).find(name), std::string_view::npos) << error.what();
    }
  };
  refused([](auto& s) { s.temperature = -1; }, "temperature");
  refused([](auto& s) { s.temperature = std::nanf(""); }, "temperature");
  refused([](auto& s) { s.top_p = 1.5f; }, "top-p");
  refused([](auto& s) { s.min_p = -0.1f; }, "min-p");
  refused([](auto& s) { s.typical_p = 2; }, "typical-p");
  refused([](auto& s) { s.repeat_penalty = 0; }, "repeat-penalty");
  refused([](auto& s) { s.repeat_last_n = -2; }, "repeat-last-n");
  refused([](auto& s) { s.mirostat = 3; }, "mirostat");
  refused([](auto& s) { s.dry.base = 0.5f; }, "dry-base");
  refused([](auto& s) { s.xtc_probability = 2; }, "xtc-probability");
  refused([](auto& s) { s.logit_bias = {{1, std::nanf("")}}; }, "token 1");
  EXPECT_NO_THROW(SamplerSettings{}.validate());
}

TEST(Mirostat, SteersTheSurpriseToTau) {
  // A Zipf-like distribution, the setting of the paper: the mean surprise of many draws comes close to tau.
  Logits logits(2000);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = -1.1f * std::log(static_cast<float>(i + 1));
  const auto all = distribution(logits);
  for (const int version : {1, 2})
    for (const float tau : {3.0f, 5.0f}) {
      SamplerSettings settings = plain();
      settings.mirostat = version;
      settings.mirostat_tau = tau;
      double surprise = 0;
      constexpr int kDraws = 3000;
      for (const TokenId id : draws(settings, logits, kDraws))
        surprise -= std::log2(all[static_cast<std::size_t>(id)].p) / kDraws;
      EXPECT_NEAR(surprise, tau, 0.25) << "version " << version;
    }
}

TEST(Mirostat, SmallVocabularies) {
  for (const int version : {1, 2})
    for (const Logits& logits : {Logits{1}, Logits{1, 1}, Logits{5, -kInf, 1}}) {
      SamplerSettings settings = plain();
      settings.mirostat = version;
      for (const TokenId id : draws(settings, logits, 50)) EXPECT_NE(logits[static_cast<std::size_t>(id)], -kInf);
    }
}

}  // namespace
}  // namespace hk::engine
