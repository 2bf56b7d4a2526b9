// Reads memory figures from /proc and the memory controller of the cgroups.
#include "engine/runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "engine/runtime/cgroup.h"

namespace hk::engine {
namespace {

namespace fs = std::filesystem;

// "Name:   1234 kB" of a /proc file, in bytes.
std::optional<std::uint64_t> kib_field(const fs::path& path, std::string_view name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    const auto kib = parse_number(std::string_view(line).substr(name.size() + 1));
    if (!kib || *kib < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*kib) * 1024;
  }
  return std::nullopt;
}

// "Max address space         4294967296           unlimited            bytes" of /proc/self/limits: the soft limit,
// which "unlimited" is not.
std::optional<std::uint64_t> soft_limit(const fs::path& root, std::string_view name) {
  std::ifstream in(root / "proc/self/limits");
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const auto limit = parse_number(std::string_view(line).substr(name.size()));
    return limit && *limit >= 0 ? std::optional<std::uint64_t>(*limit) : std::nullopt;
  }
  return std::nullopt;
}

// Version 1 has no word for "no limit": it shows the largest page-aligned number. No machine has a 4 EiB of memory.
constexpr long long kNoLimit = 1ll << 62;

}  // namespace

ProcessMemory process_memory(const fs::path& root) {
  const fs::path status = root / "proc/self/status";
  if (const auto anonymous = kib_field(status, "RssAnon"))
    return {*anonymous, kib_field(status, "RssFile").value_or(0) + kib_field(status, "RssShmem").value_or(0)};
  std::ifstream in(root / "proc/self/statm");
  std::uint64_t size = 0, resident = 0, shared = 0;
  if (!(in >> size >> resident >> shared)) return {};
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  shared = std::min(shared, resident);
  return {(resident - shared) * page, shared * page};
}

std::optional<std::uint64_t> MachineMemory::usable() const {
  std::optional<std::uint64_t> least = available;
  const auto limit = [&](std::uint64_t left) { least = std::min(left, least.value_or(left)); };
  if (cgroup_limit) limit(*cgroup_limit - std::min(*cgroup_limit, cgroup_used.value_or(0)));
  if (process_left) limit(*process_left);
  return least;
}

MachineMemory machine_memory(const fs::path& root) {
  MachineMemory memory;
  memory.total = kib_field(root / "proc/meminfo", "MemTotal");
  memory.available = kib_field(root / "proc/meminfo", "MemAvailable");
  for (const auto& [limit_name, used_name] : {std::pair{"Max address space", "VmSize"}, {"Max data size", "VmData"}}) {
    const auto limit = soft_limit(root, limit_name);
    if (!limit) continue;
    const std::uint64_t left = *limit - std::min(*limit, kib_field(root / "proc/self/status", used_name).value_or(0));
    memory.process_left = std::min(left, memory.process_left.value_or(left));
  }
  for (const auto& hierarchy : cgroup_folders(root, "memory")) {
    const bool v2 = hierarchy.version == CgroupVersion::kV2;
    for (const auto& folder : hierarchy.folders) {
      const auto text = read_line(folder / (v2 ? "memory.max" : "memory.limit_in_bytes"));
      const auto limit = text ? parse_number(*text) : std::nullopt;  // "max" is no number: no limit
      if (!limit || *limit < 0 || *limit >= kNoLimit) continue;
      const auto bytes = static_cast<std::uint64_t>(*limit);
      if (memory.cgroup_limit && *memory.cgroup_limit <= bytes) continue;
      memory.cgroup_limit = bytes;
      const auto used = read_line(folder / (v2 ? "memory.current" : "memory.usage_in_bytes"));
      const auto used_bytes = used ? parse_number(*used) : std::nullopt;
      memory.cgroup_used = used_bytes && *used_bytes >= 0 ? std::optional<std::uint64_t>(*used_bytes) : std::nullopt;
    }
  }
  return memory;
}

void prefer_huge_pages(void* data, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (address + page - 1) / page * page, end = (address + size) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace hk::engine
