// The machine's limits as a kernel level can reach them: arithmetic peaks and read bandwidth, measured in this process.
//
// Layer: engine/runtime. A matrix kernel is either waiting for memory (few activation rows) or for the dot units
// (many); how good it is can only be said against what the same cores could do at the same moment. So a benchmark takes
// these figures itself, next to its own, and never from a table of processors.
//
// The read peak streams through a buffer that was written before (untouched pages would all be the one zero page in
// cache) and is at least four times as large as all last-level caches together, so that no line is still cached when
// its turn comes again. It lies on huge pages where there are any, as weights do when the system can (docs/memory.md):
// on a virtual machine, small pages measure the host's page tables (0.5 to 13 GB/s were seen where huge ones read at
// 14). Nothing is pinned.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/runtime/aligned_buffer.h"
#include "engine/runtime/thread_pool.h"
#include "engine/runtime/topology.h"
#include "kernels/kernels.h"

namespace hk::engine {

/// Median of several runs and how far they lie apart.
struct Measured {
  double median = 0;
  double lowest = 0;
  double highest = 0;
  std::size_t runs = 0;
};
/// Empty input: all zero.
Measured summarize(std::vector<double> values);

enum class PeakKind { kInt8Dot, kF32Fma, kBf16Dot, kRead };
enum class Cores { kOne, kAll };

struct Peaks {
  Measured int8_dot;  ///< 10^9 multiply-accumulates a second
  Measured f32_fma;
  Measured bf16_dot;  ///< no runs where the level or the CPU has none
  Measured read;      ///< 10^9 bytes a second
};
struct Roofline {
  std::string_view level;
  int threads = 1;
  std::size_t buffer_bytes = 0;
  std::size_t last_level_cache = 0;  ///< of all instances together; 0 when unknown
  Peaks one;
  Peaks all;
};

/// All instances of the largest cache that data passes through; 0 when the system does not say.
std::size_t last_level_cache_bytes(const Topology& topology);

class RooflineProbe {
 public:
  /// How long one run takes, about, and the buffer's size; 0: four times the last-level caches and no less than 256
  /// MiB, but at most a quarter of the memory that is free.
  struct Options {
    std::chrono::microseconds run{8000};
    std::size_t buffer_bytes = 0;
  };
  /// Takes the buffer, writes it and finds out how much work fills a run. `pool` and `kernels` must outlive the probe.
  RooflineProbe(const kernels::KernelTable& kernels, ThreadPool& pool);
  RooflineProbe(const kernels::KernelTable& kernels, ThreadPool& pool, const Options& options);

  bool has(PeakKind kind) const { return amount(kind, Cores::kOne) != 0; }
  /// One run: 10^9 operations or bytes a second; 0 when the kind does not exist here.
  double run(PeakKind kind, Cores cores);
  /// `repetitions` runs of everything, interleaved, so that a disturbance meets all kinds alike.
  Roofline measure(std::size_t repetitions = 9);
  std::size_t buffer_bytes() const { return buffer_.bytes(); }

 private:
  std::uint64_t amount(PeakKind kind, Cores cores) const;
  void calibrate(PeakKind kind, Cores cores);
  std::uint64_t arithmetic(PeakKind kind, Cores cores, std::uint64_t rounds);
  std::uint64_t read(Cores cores, std::uint64_t bytes);

  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
  Options options_;
  std::size_t last_level_cache_ = 0;
  AlignedBuffer<std::uint8_t> buffer_;
  std::size_t next_ = 0;           ///< where the next read begins
  std::uint64_t amounts_[4][2]{};  ///< rounds a chunk, or bytes a run
  std::uint32_t checksum_ = 0;     ///< keeps the reads from being for nothing
};

/// Everything above with the default options: about a second.
Roofline measure_roofline(const kernels::KernelTable& kernels, ThreadPool& pool);

}  // namespace hk::engine
