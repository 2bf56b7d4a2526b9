// How fast a vocabulary loads and text is tokenized.
//
// Usage: tokenizer_bench MODEL [TEXT] [--benchmark_...]: a .gguf or .hk file with a vocabulary, and a text file;
// without one a page of prose is repeated.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "engine/container/model_reader.h"
#include "engine/container/vocabulary.h"

namespace {

std::unique_ptr<hk::engine::ModelReader> model;
std::string prose;

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::string repeated(const std::string& part, std::size_t bytes = kMiB) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

void load(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(hk::engine::make_tokenizer(*model));
}

void encode(benchmark::State& state, const std::string& text) {
  const auto tokens = hk::engine::make_tokenizer(*model);
  std::size_t count = 0;
  for (auto _ : state) count = tokens->encode(text, {false, true}).size();
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
  state.counters["bytes_per_token"] = static_cast<double>(text.size()) / static_cast<double>(count);
}

void decode(benchmark::State& state) {
  const auto tokens = hk::engine::make_tokenizer(*model);
  const auto ids = tokens->encode(prose, {false, true});
  for (auto _ : state) benchmark::DoNotOptimize(tokens->decode(ids, false));
  state.SetItemsProcessed(static_cast<std::int64_t>(ids.size()) * state.iterations());
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 2) {
    std::fputs("usage: tokenizer_bench MODEL [TEXT] [--benchmark_...]\n", stderr);
    return 2;
  }
  try {
    model = hk::engine::open_model(argv[1]);
    if (argc > 2) {
      std::ifstream in(argv[2], std::ios::binary);
      prose.assign(std::istreambuf_iterator<char>(in), {});
    }
    if (prose.empty())
      prose = repeated(
          "The tide came in slowly, and the boats along the quay began to lift one after another. In 1987 there had "
          "been "
          "12,500 of them; today there are fewer than 300. \"Nobody repairs nets any more,\" said the old man, "
          "\"they're "
          "bought new.\"\n\n");
    benchmark::RegisterBenchmark("load", load);
    benchmark::RegisterBenchmark("encode/prose", [](benchmark::State& s) { encode(s, prose); });
    for (const auto& [name, part] : {std::pair<const char*, const char*>{"encode/one_letter", "a"},
                                     {"encode/blanks", " "},
                                     {"encode/digits", "7"},
                                     {"encode/almost_special", "<|im_"}}) {
      benchmark::RegisterBenchmark(name, [text = repeated(part)](benchmark::State& s) { encode(s, text); });
    }
    // Four times the length, four times the time.
    benchmark::RegisterBenchmark("encode/one_letter_4MiB",
                                 [text = repeated("a", 4 * kMiB)](benchmark::State& s) { encode(s, text); });
    benchmark::RegisterBenchmark("decode/prose", decode);
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tokenizer_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
