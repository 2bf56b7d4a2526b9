// What picking a token costs at the vocabulary size of today's models, step by step.
//
// Usage: sampler_bench [--benchmark_...]. Two kinds of logits: `text` as models have them while they write (a handful
// of tokens stands out), `flat` with nothing that stands out, where most of the work is to be done.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/generate/sampler.h"

namespace {

using hk::engine::Sampler;
using hk::engine::SamplerSettings;

constexpr std::size_t kVocabulary = 151936;
constexpr std::size_t kLikely = 20;

std::vector<float> made_logits(bool flat) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(kVocabulary);
  for (float& logit : logits) logit = normal(random);
  for (std::size_t i = 0; i < kLikely && !flat; ++i) logits[random() % kVocabulary] = 22 - 0.7f * static_cast<float>(i);
  return logits;
}

/// Temperature alone: nothing is removed.
SamplerSettings plain() {
  SamplerSettings settings;
  settings.temperature = 0.8f;
  settings.top_k = 0;
  settings.top_p = 1;
  settings.min_p = 0;
  settings.seed = 7;
  return settings;
}

void pick(benchmark::State& state, const SamplerSettings& settings, const std::vector<float>& logits) {
  Sampler sampler(settings, logits.size());
  for (hk::engine::TokenId id = 0; id < 64; ++id) sampler.accept(id);
  for (auto _ : state) sampler.accept(sampler.sample(logits));
}

template <typename Change>
void add(const std::string& name, const SamplerSettings& base, Change change) {
  static const std::vector<float> text = made_logits(false), flat = made_logits(true);
  SamplerSettings settings = base;
  change(settings);
  for (const bool is_flat : {false, true})
    benchmark::RegisterBenchmark((name + (is_flat ? "/flat" : "/text")).c_str(), [settings,
                                                                                  is_flat](benchmark::State& state) {
      pick(state, settings, is_flat ? flat : text);
    })->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  add("defaults", {}, [](auto&) {});
  add("defaults+penalties", {}, [](auto& s) { s.repeat_penalty = 1.1f, s.dry.multiplier = 0.8f; });
  add("greedy", {}, [](auto& s) { s.temperature = 0; });
  add("temperature", plain(), [](auto&) {});
  add("dynamic_temperature", plain(), [](auto& s) { s.dynamic_range = 0.5f; });
  add("top_k", plain(), [](auto& s) { s.top_k = 40; });
  add("top_p", plain(), [](auto& s) { s.top_p = 0.95f; });
  add("min_p", plain(), [](auto& s) { s.min_p = 0.05f; });
  add("typical", plain(), [](auto& s) { s.typical_p = 0.9f; });
  add("top_n_sigma", plain(), [](auto& s) { s.top_n_sigma = 1.5f; });
  add("xtc", plain(), [](auto& s) { s.xtc_probability = 1; });
  add("mirostat_1", plain(), [](auto& s) { s.mirostat = 1; });
  add("mirostat_2", plain(), [](auto& s) { s.mirostat = 2; });
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
