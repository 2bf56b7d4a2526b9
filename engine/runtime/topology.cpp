// Reads processors, core kinds, caches and CPU quotas from /sys and /proc, and derives the default number of threads.
#include "engine/runtime/topology.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "engine/runtime/cgroup.h"

namespace hk::engine {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxCpus = 8192;  // the kernel's own largest NR_CPUS
// A core counts as fast from this share of the best allowed core on. Core kinds of hybrid machines lie at 75 % and
// below (by clock or by capacity), the differences between equal cores of one package (favoured cores) at 90 % and
// above.
constexpr double kFastShare = 0.8;

std::vector<int> kernel_affinity() {
  // The kernel refuses a mask smaller than its own, so grow until it fits.
  for (int bits = 1024; bits <= kMaxCpus * 8; bits *= 2) {
    cpu_set_t* set = CPU_ALLOC(bits);
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    CPU_ZERO_S(bytes, set);
    const bool ok = sched_getaffinity(0, bytes, set) == 0;
    const bool too_small = !ok && errno == EINVAL;
    std::vector<int> cpus;
    if (ok)
      for (int i = 0; i < bits; ++i)
        if (CPU_ISSET_S(i, bytes, set)) cpus.push_back(i);
    CPU_FREE(set);
    if (!too_small) return cpus;
  }
  return {};
}

std::vector<int> cpu_list_file(const fs::path& path) {
  const auto line = read_line(path);
  return line ? parse_cpu_list(*line) : std::vector<int>{};
}

int first_sibling(const fs::path& cpu_folder, int id) {
  for (const char* name : {"topology/core_cpus_list", "topology/thread_siblings_list"}) {  // new and old name
    const auto siblings = cpu_list_file(cpu_folder / name);
    if (!siblings.empty()) return *std::min_element(siblings.begin(), siblings.end());
  }
  return id;
}

// Fast processors as the kernel names them on Intel hybrids; empty when it does not.
std::vector<int> named_fast_cpus(const fs::path& root) {
  const auto fast = cpu_list_file(root / "sys/devices/cpu_core/cpus");
  if (!fast.empty() && !cpu_list_file(root / "sys/devices/cpu_atom/cpus").empty()) return fast;
  return {};
}

void mark_fast(const fs::path& root, std::vector<LogicalCpu>& cpus) {
  const auto any_allowed = [&](auto&& of) {
    return std::any_of(cpus.begin(), cpus.end(), [&](const auto& cpu) { return cpu.allowed && of(cpu); });
  };
  const auto named = named_fast_cpus(root);
  const auto is_named = [&](const LogicalCpu& cpu) {
    return std::find(named.begin(), named.end(), cpu.id) != named.end();
  };
  if (!named.empty()) {
    // Pinned to slow cores only, those are what "fast" means for us.
    if (any_allowed(is_named))
      for (auto& cpu : cpus) cpu.fast = is_named(cpu);
    return;
  }
  // Arm and recent kernels publish a capacity (1024 for the best core); elsewhere the highest clock tells kinds apart.
  for (const char* measure : {"cpu_capacity", "cpufreq/cpuinfo_max_freq"}) {
    std::vector<long long> values;
    for (const auto& cpu : cpus) {
      const auto line = read_line(root / "sys/devices/system/cpu" / fmt::format("cpu{}", cpu.id) / measure);
      const auto value = line ? parse_number(*line) : std::nullopt;
      if (!value || *value <= 0) break;
      values.push_back(*value);
    }
    if (values.size() != cpus.size()) continue;  // judged only when known for all
    long long best = 0;
    for (std::size_t i = 0; i < cpus.size(); ++i)
      if (cpus[i].allowed) best = std::max(best, values[i]);
    bool differs = false;
    for (std::size_t i = 0; i < cpus.size(); ++i) {
      cpus[i].fast = static_cast<double>(values[i]) >= kFastShare * static_cast<double>(best);
      differs = differs || !cpus[i].fast;
    }
    if (differs) return;
  }
}

std::string cpu_model_name(const fs::path& root) {
  std::ifstream in(root / "proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (colon != std::string::npos && line.starts_with("model name")) return line.substr(colon + 2);
  }
  // Arm boards name themselves in the device tree instead.
  auto board = read_line(root / "sys/firmware/devicetree/base/model");
  if (!board) return "";
  board->erase(std::find(board->begin(), board->end(), '\0'), board->end());
  return *board;
}

std::vector<CacheInfo> read_caches(const fs::path& root, const std::vector<LogicalCpu>& cpus) {
  std::map<std::pair<int, std::string>, CacheInfo> caches;
  std::set<std::string> seen;  // "level type sharers": one instance
  for (const auto& cpu : cpus) {
    for (int index = 0; index < 16; ++index) {
      const fs::path folder = root / "sys/devices/system/cpu" / fmt::format("cpu{}/cache/index{}", cpu.id, index);
      const auto level = read_line(folder / "level"), type = read_line(folder / "type"),
                 size = read_line(folder / "size");
      if (!level || !type || !size) break;
      const auto level_number = parse_number(*level);
      const auto amount = parse_number(*size);
      if (!level_number || !amount || *amount < 0 || *amount > (1ll << 40)) continue;
      const auto sharers = read_line(folder / "shared_cpu_list").value_or(fmt::format("{}", cpu.id));
      if (!seen.insert(fmt::format("{} {} {}", *level, *type, sharers)).second) continue;
      auto& cache = caches[{static_cast<int>(*level_number), *type}];
      cache.level = static_cast<int>(*level_number);
      cache.type = *type;
      const int shift = size->ends_with('K') ? 10 : size->ends_with('M') ? 20 : 0;
      cache.bytes = std::max(cache.bytes, static_cast<std::uint64_t>(*amount) << shift);
      ++cache.instances;
    }
  }
  std::vector<CacheInfo> list;
  for (auto& [key, cache] : caches) list.push_back(std::move(cache));
  return list;
}

// Quota of one group: version 2 "cpu.max" holds "max 100000" or "150000 100000", version 1 two files, -1 for none.
std::optional<double> group_quota(const CgroupFolders& hierarchy, const fs::path& folder, fs::path& source) {
  std::optional<long long> quota, period;
  if (hierarchy.version == CgroupVersion::kV2) {
    source = folder / "cpu.max";
    const auto line = read_line(source);
    if (!line) return std::nullopt;
    quota = parse_number(*line);  // "max" is no number
    const auto blank = line->find(' ');
    period = blank == std::string::npos ? 100000 : parse_number(std::string_view(*line).substr(blank));
  } else {
    source = folder / "cpu.cfs_quota_us";
    const auto quota_line = read_line(source), period_line = read_line(folder / "cpu.cfs_period_us");
    if (!quota_line || !period_line) return std::nullopt;
    quota = parse_number(*quota_line);
    period = parse_number(*period_line);
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::string counted(std::size_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

}  // namespace

std::vector<int> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view range = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const auto from = parse_number(range);
    const auto dash = range.find('-', std::min<std::size_t>(1, range.size()));
    const auto to = dash == std::string_view::npos ? from : parse_number(range.substr(dash + 1));
    if (!from || !to || *from < 0) continue;
    for (long long cpu = *from; cpu <= *to && cpu < kMaxCpus; ++cpu) cpus.push_back(static_cast<int>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::size_t Topology::allowed_cpus() const {
  return static_cast<std::size_t>(std::count_if(cpus.begin(), cpus.end(), [](const auto& cpu) { return cpu.allowed; }));
}

std::size_t Topology::physical_cores(bool allowed_only, bool fast_only) const {
  std::set<int> cores;
  for (const auto& cpu : cpus)
    if ((cpu.allowed || !allowed_only) && (cpu.fast || !fast_only)) cores.insert(cpu.core);
  return cores.size();
}

Topology read_topology(const fs::path& root, std::optional<std::vector<int>> affinity) {
  Topology topology;
  topology.cpu_model = cpu_model_name(root);
  const auto mask = affinity ? std::move(*affinity) : kernel_affinity();
  auto online = cpu_list_file(root / "sys/devices/system/cpu/online");
  if (online.empty()) online = mask;  // no sysfs: what the kernel lets us use is all we know
  if (online.empty())
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      online.push_back(static_cast<int>(i));
  for (const int id : online) {
    LogicalCpu cpu;
    cpu.id = id;
    cpu.core = first_sibling(root / "sys/devices/system/cpu" / fmt::format("cpu{}", id), id);
    cpu.allowed = mask.empty() || std::find(mask.begin(), mask.end(), id) != mask.end();
    topology.cpus.push_back(cpu);
  }
  mark_fast(root, topology.cpus);
  topology.caches = read_caches(root, topology.cpus);
  for (const auto& hierarchy : cgroup_folders(root, "cpu")) {
    for (const auto& folder : hierarchy.folders) {
      fs::path source;
      const auto quota = group_quota(hierarchy, folder, source);
      if (!quota || (topology.cpu_quota && *topology.cpu_quota <= *quota)) continue;
      topology.cpu_quota = quota;
      topology.cpu_quota_source = source.string();
    }
  }
  return topology;
}

ThreadChoice default_threads(const Topology& topology) {
  const std::size_t allowed_cores = topology.physical_cores(true, false);
  const std::size_t fast_cores = topology.physical_cores(true, true);
  const std::size_t cores = std::clamp<std::size_t>(fast_cores, 1, 256);
  std::string why;
  if (fast_cores < allowed_cores)
    why = fmt::format("{} fast of {} physical cores", fast_cores, allowed_cores);
  else
    why = counted(allowed_cores, "physical core", "physical cores");
  if (topology.allowed_cpus() < topology.cpus.size())
    why += fmt::format(" in the affinity mask ({} of {} CPUs)", topology.allowed_cpus(), topology.cpus.size());
  ThreadChoice choice{static_cast<int>(cores), {}};
  if (!topology.cpu_quota) {
    why += ", no CPU quota";
  } else {
    const double whole = std::max(1.0, std::min(*topology.cpu_quota, 256.0));  // rounded down, at least one
    why += fmt::format(", CPU quota {:.4g}", *topology.cpu_quota);
    choice.threads = std::min(choice.threads, static_cast<int>(whole));
  }
  choice.why = why;
  return choice;
}

}  // namespace hk::engine
