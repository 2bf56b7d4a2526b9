// What got between a measurement and the machine: stolen and throttled time, other programs, a clock that changed.
//
// Layer: engine/runtime. Reads /proc and /sys below an injectable root. A benchmark that cannot say whether it was
// alone cannot be compared with another one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hk::engine {

/// Ticks of /proc/stat, of all processors together; absent when the system does not say.
struct CpuTicks {
  std::uint64_t busy = 0;   ///< user, nice, system, interrupts
  std::uint64_t steal = 0;  ///< the hypervisor ran somebody else
  std::uint64_t all = 0;
};
std::optional<CpuTicks> read_cpu_ticks(const std::filesystem::path& root = "/");
/// Microseconds that the cgroup's CPU quota kept our group waiting so far.
std::optional<std::uint64_t> read_throttled_us(const std::filesystem::path& root = "/");

struct Disturbance {
  double steal = 0;         ///< part of the machine's time that was stolen, 0 to 1
  double others = 0;        ///< processors that other programs kept busy
  double throttled = 0;     ///< part of the time that the quota kept us waiting
  double clock_change = 0;  ///< how much slower the slowest calibrated loop was than the fastest, 0 to 1
  /// Sentences about what makes the numbers doubtful; empty when nothing does.
  std::vector<std::string> warnings() const;
};

class DisturbanceWatch {
 public:
  explicit DisturbanceWatch(std::filesystem::path root = "/");
  /// Times the calibrated loop: a tenth of a millisecond, a few times.
  void look();
  /// Since the making.
  Disturbance sum() const;

 private:
  std::filesystem::path root_;
  std::optional<CpuTicks> ticks_;
  std::optional<std::uint64_t> throttled_us_;
  double own_seconds_ = 0;
  double start_seconds_ = 0;
  double fastest_ = 0;
  double slowest_ = 0;
};

}  // namespace hk::engine
