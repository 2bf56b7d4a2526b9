// Counters of the system before and after, and a loop whose length in cycles is known (see disturbance.h).
#include "engine/runtime/disturbance.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

#include "engine/runtime/cgroup.h"

namespace hk::engine {
namespace {

namespace fs = std::filesystem;

// What is worth a warning: less than this no comparison of a few percent depends on.
constexpr double kStealWorthTelling = 0.01;
constexpr double kOthersWorthTelling = 0.1;
constexpr double kThrottledWorthTelling = 0.01;
constexpr double kClockWorthTelling = 0.05;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// CPU time of this process, all threads.
double own_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// A chain of dependent steps takes the same number of cycles every time, whatever the memory does. The best of a few
/// tries is one that nobody interrupted.
double loop_seconds() {
  constexpr int kTries = 5, kSteps = 100000;
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const double start = now_seconds();
    std::uint64_t x = 88172645463325252ULL;
    for (int step = 0; step < kSteps; ++step) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      asm volatile("" : "+r"(x));  // every step happens
    }
    const double took = now_seconds() - start;
    if (i == 0 || took < best) best = took;
  }
  return best;
}

}  // namespace

std::optional<CpuTicks> read_cpu_ticks(const fs::path& root) {
  const auto line = read_line(root / "proc/stat");
  if (!line) return std::nullopt;
  std::istringstream in(*line);
  std::string name;
  in >> name;
  // user nice system idle iowait irq softirq steal; guest time is part of user already.
  std::uint64_t t[8] = {};
  int count = 0;
  while (count < 8 && in >> t[count]) ++count;
  if (name != "cpu" || count < 4) return std::nullopt;
  CpuTicks ticks;
  ticks.busy = t[0] + t[1] + t[2] + t[5] + t[6];
  ticks.steal = t[7];
  for (const std::uint64_t part : t) ticks.all += part;
  return ticks;
}

std::optional<std::uint64_t> read_throttled_us(const fs::path& root) {
  std::optional<std::uint64_t> most;
  for (const auto& hierarchy : cgroup_folders(root, "cpu")) {
    const bool v2 = hierarchy.version == CgroupVersion::kV2;
    for (const auto& folder : hierarchy.folders) {
      std::ifstream in(folder / "cpu.stat");
      std::string name;
      for (std::uint64_t value = 0; in >> name >> value;) {
        if (name != (v2 ? "throttled_usec" : "throttled_time")) continue;
        most = std::max(most.value_or(0), v2 ? value : value / 1000);  // version 1 counts nanoseconds
      }
    }
  }
  return most;
}

std::vector<std::string> Disturbance::warnings() const {
  std::vector<std::string> sentences;
  if (steal >= kStealWorthTelling)
    sentences.push_back(fmt::format("the hypervisor took away {:.1f} % of the processor time", 100 * steal));
  if (others >= kOthersWorthTelling)
    sentences.push_back(fmt::format("other programs kept {:.1f} processors busy", others));
  if (throttled >= kThrottledWorthTelling)
    sentences.push_back(fmt::format("the CPU quota stopped the program for {:.1f} % of the time", 100 * throttled));
  if (clock_change >= kClockWorthTelling)
    sentences.push_back(fmt::format("the clock changed: the slowest calibrated loop ran {:.0f} % below the fastest",
                                    100 * clock_change));
  return sentences;
}

DisturbanceWatch::DisturbanceWatch(fs::path root)
    : root_(std::move(root)),
      ticks_(read_cpu_ticks(root_)),
      throttled_us_(read_throttled_us(root_)),
      own_seconds_(own_cpu_seconds()),
      start_seconds_(now_seconds()) {
  look();
}

void DisturbanceWatch::look() {
  const double took = loop_seconds();
  fastest_ = fastest_ == 0 ? took : std::min(fastest_, took);
  slowest_ = std::max(slowest_, took);
}

Disturbance DisturbanceWatch::sum() const {
  Disturbance d;
  const double seconds = std::max(1e-9, now_seconds() - start_seconds_);
  if (const auto ticks = read_cpu_ticks(root_); ticks && ticks_ && ticks->all > ticks_->all) {
    d.steal = static_cast<double>(ticks->steal - std::min(ticks->steal, ticks_->steal)) /
              static_cast<double>(ticks->all - ticks_->all);
    // By the ticks alone: over a short time they do not add up to what the clock says.
    const double busy = static_cast<double>(ticks->busy - std::min(ticks->busy, ticks_->busy)) /
                        static_cast<double>(ticks->all - ticks_->all) *
                        static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
    d.others = std::max(0.0, busy - (own_cpu_seconds() - own_seconds_) / seconds);
  }
  if (const auto throttled = read_throttled_us(root_); throttled && throttled_us_ && *throttled > *throttled_us_)
    d.throttled = std::min(1.0, 1e-6 * static_cast<double>(*throttled - *throttled_us_) / seconds);
  if (slowest_ > 0) d.clock_change = 1 - fastest_ / slowest_;
  return d;
}

}  // namespace hk::engine
