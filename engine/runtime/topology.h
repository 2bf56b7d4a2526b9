// What the machine's processors look like to us, and how many threads that is worth by default.
//
// Layer: engine/runtime. Reads /sys and /proc below an injectable root. The rule: one thread a physical core, fast
// cores only, of those that are online and in our affinity mask, and no more than the cgroup's CPU quota allows. A
// second thread on a core shares its vector units and caches, a slow core makes the fast ones wait at the end of each
// matrix, and a thread beyond the quota is stopped for the rest of the period: each of these makes a forward pass
// slower, not faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

struct CacheInfo {
  int level = 0;
  std::string type;         ///< "Data", "Instruction", "Unified"
  std::uint64_t bytes = 0;  ///< of one instance
  std::size_t instances = 0;
};

/// One online processor as the kernel numbers them.
struct LogicalCpu {
  int id = 0;
  int core = 0;         ///< smallest processor number on the same physical core
  bool allowed = true;  ///< in our affinity mask
  bool fast = true;     ///< on one of the fast cores of a hybrid machine, or the machine has one kind only
};

struct Topology {
  std::string cpu_model;            ///< "" when unknown
  std::vector<LogicalCpu> cpus;     ///< online ones by number; never empty
  std::optional<double> cpu_quota;  ///< CPUs' worth of time the cgroups grant; absent when unlimited
  std::string cpu_quota_source;     ///< the file that says so
  std::vector<CacheInfo> caches;

  std::size_t allowed_cpus() const;
  std::size_t physical_cores(bool allowed_only, bool fast_only) const;
};

/// `affinity`: the processors we may run on; asked from the kernel when absent.
Topology read_topology(const std::filesystem::path& root = "/",
                       std::optional<std::vector<int>> affinity = std::nullopt);

struct ThreadChoice {
  int threads = 1;
  std::string why;  ///< "2 physical cores, no CPU quota"
};
ThreadChoice default_threads(const Topology& topology);

/// "0-3,8" as the kernel writes lists of processors; empty for what is not one. Numbers beyond any machine's are
/// ignored.
std::vector<int> parse_cpu_list(std::string_view text);

}  // namespace hk::engine
