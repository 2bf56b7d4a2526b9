// Runs the peak loops of a kernel level on one core or all and times them (see roofline.h).
#include "engine/runtime/roofline.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "engine/runtime/memory.h"

namespace hk::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kCachesCovered = 4;
constexpr std::size_t kSmallestBuffer = std::size_t{256} << 20;
constexpr std::size_t kUnit = kernels::kProbeReadUnit;
// Reads are handed out in pieces: large against the cost of a hand-out, small enough that a core that is late leaves
// work to others.
constexpr std::size_t kPiece = std::size_t{512} << 10;
// Chunks a worker gets in an arithmetic run, for the same reason.
constexpr std::size_t kChunksAThread = 4;
constexpr int kTries = 3;  // timings of one amount of work while it is being fitted to the length of a run
constexpr double kGiga = 1e9;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::size_t buffer_size(std::size_t asked, std::size_t last_level_cache) {
  std::size_t bytes = asked != 0 ? asked : std::max(kSmallestBuffer, kCachesCovered * last_level_cache);
  if (const auto usable = machine_memory().usable(); usable && asked == 0)
    bytes = std::min<std::size_t>(bytes, std::max<std::uint64_t>(*usable / 4, kUnit));
  return std::max(kUnit, bytes / kUnit * kUnit);
}

}  // namespace

Measured summarize(std::vector<double> values) {
  Measured result;
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  result.median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  result.lowest = values.front();
  result.highest = values.back();
  result.runs = values.size();
  return result;
}

std::size_t last_level_cache_bytes(const Topology& topology) {
  int level = 0;
  std::size_t bytes = 0;
  for (const CacheInfo& cache : topology.caches) {
    if (cache.type == "Instruction" || cache.level < level) continue;
    if (cache.level > level) bytes = 0;
    level = cache.level;
    bytes += static_cast<std::size_t>(cache.bytes) * cache.instances;
  }
  return bytes;
}

RooflineProbe::RooflineProbe(const kernels::KernelTable& kernels, ThreadPool& pool)
    : RooflineProbe(kernels, pool, Options()) {}

RooflineProbe::RooflineProbe(const kernels::KernelTable& kernels, ThreadPool& pool, const Options& options)
    : kernels_(kernels),
      pool_(pool),
      options_(options),
      last_level_cache_(last_level_cache_bytes(read_topology())),
      buffer_(buffer_size(options.buffer_bytes, last_level_cache_), "the buffer that read bandwidth is measured on") {
  prefer_huge_pages(buffer_.data(), buffer_.bytes());
  // Written by all workers: the pages are spread over the memory of their nodes as they come, and it takes less time.
  pool_.run((buffer_.bytes() + kPiece - 1) / kPiece, [&](std::size_t piece, int) {
    const std::size_t from = piece * kPiece, count = std::min(kPiece, buffer_.bytes() - from);
    std::memset(buffer_.data() + from, static_cast<int>(piece % 251 + 1), count);
  });
  // Read once before anything is timed: a virtual machine may set up its translation of a page only when it is read.
  read(Cores::kAll, buffer_.bytes());
  for (const PeakKind kind : {PeakKind::kInt8Dot, PeakKind::kF32Fma, PeakKind::kBf16Dot, PeakKind::kRead}) {
    for (const Cores cores : {Cores::kOne, Cores::kAll}) calibrate(kind, cores);
  }
}

std::uint64_t RooflineProbe::amount(PeakKind kind, Cores cores) const {
  return amounts_[static_cast<int>(kind)][static_cast<int>(cores)];
}

std::uint64_t RooflineProbe::arithmetic(PeakKind kind, Cores cores, std::uint64_t rounds) {
  const auto loop = kind == PeakKind::kInt8Dot  ? kernels_.probe.int8_dot
                    : kind == PeakKind::kF32Fma ? kernels_.probe.f32_fma
                                                : kernels_.probe.bf16_dot;
  if (cores == Cores::kOne) {
    std::uint64_t done = 0;
    for (std::size_t chunk = 0; chunk < kChunksAThread; ++chunk) done += loop(rounds);
    return done;
  }
  std::atomic<std::uint64_t> done{0};
  pool_.run(kChunksAThread * static_cast<std::size_t>(pool_.threads()),
            [&](std::size_t, int) { done.fetch_add(loop(rounds), std::memory_order_relaxed); });
  return done.load();
}

/// Reads `bytes` from where the last run ended, around the end of the buffer.
std::uint64_t RooflineProbe::read(Cores cores, std::uint64_t bytes) {
  const std::size_t size = buffer_.bytes();
  const std::size_t first = next_;
  const auto stretch = [&](std::size_t from, std::size_t count) -> std::uint32_t {
    std::uint32_t sum = 0;
    for (std::size_t begin = (first + from) % size; count > 0; begin = 0) {
      const std::size_t run = std::min(count, size - begin);
      sum ^= kernels_.probe.read(buffer_.data() + begin, run);
      count -= run;
    }
    return sum;
  };
  if (cores == Cores::kOne) {
    checksum_ ^= stretch(0, bytes);
  } else {
    std::atomic<std::uint32_t> sum{0};
    pool_.run((bytes + kPiece - 1) / kPiece, [&](std::size_t piece, int) {
      const std::size_t from = piece * kPiece;
      sum.fetch_xor(stretch(from, std::min<std::size_t>(kPiece, bytes - from)), std::memory_order_relaxed);
    });
    checksum_ ^= sum.load();
  }
  next_ = (first + bytes) % size;
  return bytes;
}

double RooflineProbe::run(PeakKind kind, Cores cores) {
  const std::uint64_t size = amount(kind, cores);
  if (size == 0) return 0;
  const auto start = Clock::now();
  const std::uint64_t done = kind == PeakKind::kRead ? read(cores, size) : arithmetic(kind, cores, size);
  return static_cast<double>(done) / seconds_since(start) / kGiga;
}

/// Doubles the work until it takes a quarter of a run, then scales it. This also brings the clock up. The fastest of
/// kTries counts: one that the system held up would make all runs too short to mean something.
void RooflineProbe::calibrate(PeakKind kind, Cores cores) {
  const bool reads = kind == PeakKind::kRead;
  std::uint64_t& size = amounts_[static_cast<int>(kind)][static_cast<int>(cores)];
  size = reads ? kUnit * 64 : 64;
  const double wanted = std::chrono::duration<double>(options_.run).count();
  const std::uint64_t most = reads ? buffer_.bytes() : std::uint64_t{1} << 40;
  for (;;) {
    double took = wanted;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const auto start = Clock::now();
      const std::uint64_t done = reads ? read(cores, size) : arithmetic(kind, cores, size);
      took = std::min(took, seconds_since(start));
      if (done == 0) {
        size = 0;
        return;
      }
    }
    if (took < wanted / 4 && size < most) {
      size = std::min(most, size * 2);
      continue;
    }
    const double scaled = static_cast<double>(size) * std::min(4.0, wanted / std::max(took, 1e-9));
    size = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(scaled), 1, most);
    if (reads) size = std::max<std::uint64_t>(kUnit, size / kUnit * kUnit);
    return;
  }
}

Roofline RooflineProbe::measure(std::size_t repetitions) {
  constexpr std::pair<PeakKind, Measured Peaks::*> kKinds[] = {{PeakKind::kInt8Dot, &Peaks::int8_dot},
                                                               {PeakKind::kF32Fma, &Peaks::f32_fma},
                                                               {PeakKind::kBf16Dot, &Peaks::bf16_dot},
                                                               {PeakKind::kRead, &Peaks::read}};
  std::vector<double> values[4][2];
  for (std::size_t repetition = 0; repetition < repetitions; ++repetition) {
    for (const auto& [kind, member] : kKinds) {
      if (!has(kind)) continue;
      for (const Cores cores : {Cores::kOne, Cores::kAll}) {
        if (cores == Cores::kAll && pool_.threads() == 1) continue;
        values[static_cast<int>(kind)][static_cast<int>(cores)].push_back(run(kind, cores));
      }
    }
  }
  Roofline roofline;
  roofline.level = kernels_.level;
  roofline.threads = pool_.threads();
  roofline.buffer_bytes = buffer_.bytes();
  roofline.last_level_cache = last_level_cache_;
  for (const auto& [kind, member] : kKinds) {
    auto& all = values[static_cast<int>(kind)][static_cast<int>(Cores::kAll)];
    if (pool_.threads() == 1) all = values[static_cast<int>(kind)][static_cast<int>(Cores::kOne)];
    roofline.one.*member = summarize(std::move(values[static_cast<int>(kind)][static_cast<int>(Cores::kOne)]));
    roofline.all.*member = summarize(std::move(all));
  }
  return roofline;
}

Roofline measure_roofline(const kernels::KernelTable& kernels, ThreadPool& pool) {
  return RooflineProbe(kernels, pool).measure();
}

}  // namespace hk::engine
