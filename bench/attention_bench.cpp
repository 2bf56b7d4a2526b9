// Attention over KV pages: decoding (one new position) and reading a prompt (128 positions), at several depths.
//
// Google Benchmark: each case is a fixed loop and the figures of interest are rates. of_read, of_f32 and of_int8 are
// fractions of what the level's own loops reach: these run for a moment before and after each case, so that a machine
// whose speed changes is compared with itself; use --benchmark_repetitions besides. Bytes are those of the visible keys
// and values, counted once a query block; multiply-accumulates are those of scores and weighted values. With q8_0 a
// weighted value takes two integer products (kernels/isa/attention_int8.h): of_int8 can reach two thirds.
//
// Work is cut as models/attend does it: a task is one KV head and a block of 32 queries that share its pages. Caches of
// several layers lie one behind the other and take turns, so that decoding reads memory and not the last-level cache.
// With HK_COLD_BYTES=0 in the environment there is one layer: at short depths its cache stays in L2, and what shows is
// the arithmetic.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/report.h"
#include "engine/runtime/aligned_buffer.h"
#include "engine/runtime/memory.h"
#include "engine/runtime/roofline.h"
#include "engine/runtime/thread_pool.h"
#include "engine/runtime/topology.h"
#include "kernels/kernels.h"
#include "kernels/quant/sample_blocks.h"

namespace hk::bench {
namespace {

using kernels::kKvPage;
using kernels::KvType;

constexpr std::size_t kKvHeads = 8;
constexpr std::size_t kQueriesABlock = 32;  // as in models/attend.cpp
constexpr std::size_t kPromptRows = 128;
constexpr std::size_t kColdBytes = std::size_t{128} << 20;

struct Shape {
  KvType type = KvType::kF16;
  std::size_t head_size = 0;
  std::size_t group = 0;  ///< query heads a KV head
  std::size_t depth = 0;  ///< positions
  std::size_t rows = 0;   ///< new positions, the last ones of `depth`

  std::size_t key_bytes() const { return kernels::key_page_bytes(type, head_size); }
  std::size_t page_bytes() const { return key_bytes() + kernels::value_page_bytes(type, head_size); }
  std::size_t pages() const { return (depth + kKvPage - 1) / kKvPage; }
  std::size_t layer_bytes() const { return kKvHeads * pages() * page_bytes(); }
  std::size_t rows_a_block() const { return std::max<std::size_t>(1, kQueriesABlock / group); }
  std::size_t blocks() const { return (rows + rows_a_block() - 1) / rows_a_block(); }
};

/// Keys and values of several layers: pages of keys and of values in turn, all with the same made-up content.
class KvMemory {
 public:
  KvMemory(const kernels::KernelTable& table, std::size_t cold_bytes) : table_(table), cold_bytes_(cold_bytes) {}

  /// Benchmarks are entered several times: what is there already stays.
  void prepare(const Shape& shape) {
    layers_ = std::max<std::size_t>(1, (cold_bytes_ + shape.layer_bytes() - 1) / shape.layer_bytes());
    const std::size_t bytes = layers_ * shape.layer_bytes();
    if (filled_ >= bytes && type_ == shape.type && head_size_ == shape.head_size) return;
    if (memory_.size() < bytes) {
      memory_ = {};
      memory_ = engine::AlignedBuffer<std::uint8_t>(bytes, "keys and values");
      engine::prefer_huge_pages(memory_.data(), bytes);  // as models/kv_cache does for long contexts
    }
    std::vector<std::uint8_t> pattern(shape.page_bytes());
    std::vector<float> x(shape.head_size);
    kernels::SampleRandom random(3);
    for (std::size_t p = 0; p < kKvPage; ++p) {
      for (float& v : x) v = random.between(-1, 1);
      table_.store_key(x.data(), shape.head_size, shape.type, p, pattern.data());
      table_.store_value(x.data(), shape.head_size, shape.type, p, pattern.data() + shape.key_bytes());
    }
    for (std::size_t at = 0; at < bytes; at += pattern.size())
      std::memcpy(memory_.data() + at, pattern.data(), pattern.size());
    filled_ = bytes;
    type_ = shape.type;
    head_size_ = shape.head_size;
  }
  const std::uint8_t* data() const { return memory_.data(); }
  std::size_t bytes() const { return memory_.bytes(); }
  const std::uint8_t* keys(const Shape& shape, std::size_t layer, std::size_t head, std::size_t page) const {
    return memory_.data() + layer % layers_ * shape.layer_bytes() + (head * shape.pages() + page) * shape.page_bytes();
  }

 private:
  const kernels::KernelTable& table_;
  std::size_t cold_bytes_;
  engine::AlignedBuffer<std::uint8_t> memory_;
  std::size_t filled_ = 0, layers_ = 1, head_size_ = 0;
  KvType type_ = KvType::kF16;
};

/// One worker's queries and sums.
struct Scratch {
  explicit Scratch(const Shape& shape) {
    const std::size_t n = shape.rows_a_block() * shape.group;
    q = engine::AlignedBuffer<float>(n * shape.head_size, "queries");
    acc = engine::AlignedBuffer<float>(n * shape.head_size, "sums", true);
    page_acc = engine::AlignedBuffer<float>(n * shape.head_size, "sums of a page", true);
    kernels::SampleRandom random(4);
    for (float& v : q) v = random.between(-1, 1) / std::sqrt(static_cast<float>(shape.head_size));
    for (std::size_t i = 0; i < n; ++i) {
      q_rows.push_back(q.data() + i * shape.head_size);
      page_rows.push_back(page_acc.data() + i * shape.head_size);
    }
    for (auto* values : {&max, &sum, &page_max, &page_sum}) values->resize(n);
    first.resize(n);
    last.resize(n);
    kernel = engine::AlignedBuffer<std::byte>(kernels::attend_scratch_bytes(shape.type, shape.head_size), "scores");
  }
  engine::AlignedBuffer<float> q, acc, page_acc;
  engine::AlignedBuffer<std::byte> kernel;
  std::vector<const float*> q_rows;
  std::vector<float*> page_rows;
  std::vector<float> max, sum, page_max, page_sum;
  std::vector<std::uint16_t> first, last;
};

void attend_block(const kernels::KernelTable& table, const Shape& shape, const KvMemory& memory, std::size_t layer,
                  std::size_t head, std::size_t block, Scratch& s) {
  const std::size_t first_row = block * shape.rows_a_block();
  const std::size_t rows = std::min(shape.rows_a_block(), shape.rows - first_row);
  const std::size_t position = shape.depth - shape.rows + first_row, n = rows * shape.group;
  std::fill(s.max.begin(), s.max.end(), -std::numeric_limits<float>::infinity());
  std::fill(s.sum.begin(), s.sum.end(), 0.0F);
  for (std::size_t page = 0; page * kKvPage < position + rows; ++page) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t visible = position + i / shape.group + 1, begin = page * kKvPage;
      s.last[i] = static_cast<std::uint16_t>(visible < begin ? 0 : std::min(visible - begin, kKvPage));
    }
    const std::uint8_t* keys = memory.keys(shape, layer, head, page);
    table.attend_page({keys, keys + shape.key_bytes(), shape.type, shape.head_size, shape.head_size, n, s.q_rows.data(),
                       s.first.data(), s.last.data(), 0.0F, nullptr, nullptr, s.page_max.data(), s.page_sum.data(),
                       s.page_rows.data(), s.kernel.data(),
                       (page + 1) * kKvPage < position + rows ? memory.keys(shape, layer, head, page + 1) : nullptr,
                       page != 0});
    for (std::size_t i = 0; i < n; ++i)
      table.attend_merge(&s.max[i], &s.sum[i], s.acc.data() + i * shape.head_size, s.page_max[i], s.page_sum[i],
                         s.page_rows[i], shape.head_size);
  }
}

/// What the machine does around a case; rates in 10^9 a second, of all threads together.
struct Rates {
  double read = 0, f32 = 0, int8 = 0;
};

Rates measure_rates(const kernels::KernelTable& table, const KvMemory& memory, engine::ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kRounds = 100000;
  const auto threads = static_cast<std::size_t>(pool.threads());
  const auto rate = [&](const auto& work) {  // work(worker's part) -> its amount
    std::atomic<std::uint64_t> done{0};
    const auto start = Clock::now();
    pool.run(threads, [&](std::size_t part, int) { done += work(part); });
    return static_cast<double>(done) / 1e9 / std::chrono::duration<double>(Clock::now() - start).count();
  };
  Rates rates;
  rates.f32 = rate([&](std::size_t) { return table.probe.f32_fma(kRounds); });
  rates.int8 = rate([&](std::size_t) { return table.probe.int8_dot(kRounds); });
  const std::size_t bytes = memory.bytes() / threads / kernels::kProbeReadUnit * kernels::kProbeReadUnit;
  rates.read = rate([&](std::size_t part) {
    benchmark::DoNotOptimize(table.probe.read(memory.data() + part * bytes, bytes));
    return bytes;
  });
  return rates;
}

void run(benchmark::State& state, const kernels::KernelTable& table, const Shape& shape, KvMemory& memory,
         engine::ThreadPool& pool) {
  memory.prepare(shape);
  const Rates before = measure_rates(table, memory, pool);
  std::vector<Scratch> scratch;
  for (int worker = 0; worker < pool.threads(); ++worker) scratch.emplace_back(shape);
  const std::size_t blocks = shape.blocks();
  std::size_t layer = 0;
  for (auto _ : state) {
    // the last blocks see most: they are handed out first
    pool.run(kKvHeads * blocks, [&](std::size_t task, int worker) {
      attend_block(table, shape, memory, layer, task % kKvHeads, blocks - 1 - task / kKvHeads,
                   scratch[static_cast<std::size_t>(worker)]);
    });
    ++layer;
    benchmark::ClobberMemory();
  }
  const Rates after = measure_rates(table, memory, pool);
  double visible = 0, read = 0;  // positions: over all queries of a KV head, and over its blocks
  for (std::size_t row = 0; row < shape.rows; ++row) visible += static_cast<double>(shape.depth - row);
  for (std::size_t block = 0; block < blocks; ++block)
    read += static_cast<double>(shape.depth - shape.rows + std::min(shape.rows, (block + 1) * shape.rows_a_block()));
  const double runs = static_cast<double>(state.iterations());
  const double wide = static_cast<double>(kKvHeads * shape.head_size * 2);  // keys and values of all heads
  const double macs = visible * wide * static_cast<double>(shape.group) * runs;
  const double bytes =
      read * wide * static_cast<double>(shape.page_bytes()) / static_cast<double>(kKvPage * shape.head_size * 2) * runs;
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(bytes / 1e9, Counter::kIsRate);
  state.counters["GMAC/s"] = Counter(macs / 1e9, Counter::kIsRate);
  state.counters["of_read"] = Counter(bytes / 1e9 / ((before.read + after.read) / 2), Counter::kIsRate);
  state.counters["of_f32"] = Counter(macs / 1e9 / ((before.f32 + after.f32) / 2), Counter::kIsRate);
  if (shape.type == KvType::kQ8_0)
    state.counters["of_int8"] = Counter(macs / 1e9 / ((before.int8 + after.int8) / 2), Counter::kIsRate);
}

/// How much memory the caches of all layers take at least.
std::size_t cold_bytes(const engine::Topology& topology) {
  if (const char* asked = std::getenv("HK_COLD_BYTES")) return std::strtoull(asked, nullptr, 10);
  return std::max(kColdBytes, 4 * engine::last_level_cache_bytes(topology));
}

int run_all(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return static_cast<int>(ErrorKind::kUsage);
  const auto topology = engine::read_topology();
  const kernels::KernelTable& table = kernels::kernels();  // HK_KERNELS picks another level
  engine::ThreadPool one(1), all(engine::default_threads(topology).threads);
  const auto roofline = engine::measure_roofline(table, all);
  fmt::print(stderr, "{}\n", text(roofline));
  benchmark::AddCustomContext("kernels", std::string(table.level));
  benchmark::AddCustomContext("roofline", roofline_json(roofline).dump());
  KvMemory memory(table, cold_bytes(topology));
  for (const KvType type : kernels::kKvTypes) {
    for (const std::size_t head_size : {64, 128}) {
      for (const std::size_t group : {1, 4, 8}) {
        for (const std::size_t depth : {256, 1024, 4096, 16384}) {
          for (const bool prompt : {false, true}) {
            for (engine::ThreadPool* pool : {&one, &all}) {
              if (pool == &all && all.threads() == 1) continue;
              const Shape shape{type, head_size, group, depth, prompt ? kPromptRows : 1};
              const std::string name =
                  fmt::format("{}/{}/head:{}/group:{}/depth:{}/threads:{}", prompt ? "prompt" : "decode",
                              kernels::kv_type_name(type), head_size, group, depth, pool->threads());
              benchmark::RegisterBenchmark(name.c_str(), [&table, shape, &memory, pool](benchmark::State& state) {
                run(state, table, shape, memory, *pool);
              })->UseRealTime();
            }
          }
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace hk::bench

int main(int argc, char** argv) {
  try {
    return hk::bench::run_all(argc, argv);
  } catch (const hk::Error& error) {
    fmt::print(stderr, "attention_bench: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
}
