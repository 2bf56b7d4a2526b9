// A progress line for long steps: redrawn in place on a terminal, silent elsewhere.
//
// Layer: cli. Writes to stderr only.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace hk::cli {

class Progress {
 public:
  /// `label` says what is being done; `total` in bytes, 0 when it is not known.
  Progress(std::string label, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Draws at most ten times a second, so it may be called as often as is convenient.
  void update(std::uint64_t done);
  void update(std::uint64_t done, std::uint64_t total) {
    total_ = total;
    update(done);
  }
  /// Removes the line, so that what follows starts on a clean one. Also done on destruction.
  void clear();
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  std::uint64_t total_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_ - std::chrono::seconds(1);
};

}  // namespace hk::cli
