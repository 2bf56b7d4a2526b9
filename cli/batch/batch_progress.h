// How far a run is: one line on stderr, redrawn on a terminal, now and then elsewhere.
//
// Layer: cli/batch.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/generate/scheduler.h"

namespace hk::cli {

struct BatchCount {
  std::uint64_t done = 0;       ///< answered, by this run or one before
  std::uint64_t before = 0;     ///< of those, by one before
  std::uint64_t failed = 0;     ///< of `done`, with an error
  std::optional<double> total;  ///< requests of this shard, as far as known
  bool total_exact = false;
};

class BatchProgress {
 public:
  explicit BatchProgress(bool quiet);
  ~BatchProgress() { clear(); }
  BatchProgress(const BatchProgress&) = delete;
  BatchProgress& operator=(const BatchProgress&) = delete;

  /// Draws when it is time to.
  void update(const BatchCount& count, const engine::Scheduler& scheduler);
  /// A whole line of its own, at any time.
  void report(const BatchCount& count, const engine::Scheduler& scheduler);
  void clear();
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string line(const BatchCount& count, const engine::Scheduler& scheduler) const;

  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_ = start_;
};

}  // namespace hk::cli
