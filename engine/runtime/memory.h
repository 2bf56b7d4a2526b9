// How much memory this process and this machine have: private and mapped bytes, what is free, what the cgroup allows.
//
// Layer: engine/runtime. Reads /proc and /sys below an injectable root, so that a test can show it another machine.
// Nothing here fails: what cannot be read is absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace hk::engine {

/// Resident memory of this process, split by what it costs the machine.
struct ProcessMemory {
  std::uint64_t private_bytes = 0;  ///< heap, stacks, KV cache: gone only when freed
  std::uint64_t mapped_bytes = 0;   ///< pages of files (the weights), which the kernel may drop and read again
};

/// /proc/self/status (RssAnon, RssFile, RssShmem), or statm on kernels before 4.5. Both cost microseconds; smaps_rollup
/// would walk every page of a mapped model. The kernel batches these counters per thread, so they may lag by some
/// hundred KiB.
ProcessMemory process_memory(const std::filesystem::path& root = "/");

struct MachineMemory {
  std::optional<std::uint64_t> total;         ///< MemTotal
  std::optional<std::uint64_t> available;     ///< MemAvailable
  std::optional<std::uint64_t> cgroup_limit;  ///< smallest limit from our cgroup up to the mount; absent when unlimited
  std::optional<std::uint64_t> cgroup_used;   ///< usage of the group that has that limit
  /// What this process may still take by its own limits (ulimit -v and -d); absent when unlimited.
  std::optional<std::uint64_t> process_left;
  /// Smallest of `available`, what the cgroup leaves and what the process may take.
  std::optional<std::uint64_t> usable() const;
};

MachineMemory machine_memory(const std::filesystem::path& root = "/");

/// Asks for huge pages in [data, data + size) before it is written for the first time; where there are none, small ones
/// serve. For buffers of many MiB that are read in one stream.
void prefer_huge_pages(void* data, std::size_t size);

}  // namespace hk::engine
