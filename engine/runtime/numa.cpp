// Nodes from sysfs, and the system calls that keep threads and memory on them (see numa.h).
#include "engine/runtime/numa.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "engine/runtime/cgroup.h"

namespace hk::engine {
namespace {

// linux/mempolicy.h, which is not installed everywhere.
constexpr int kPreferred = 1, kInterleave = 3;

bool pin(const std::vector<int>& cpus) {
  if (cpus.empty()) return true;
  const int bits = *std::max_element(cpus.begin(), cpus.end()) + 1;
  cpu_set_t* set = CPU_ALLOC(bits);
  if (set == nullptr) return false;
  const std::size_t bytes = CPU_ALLOC_SIZE(bits);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set);
  const bool ok = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return ok;
}

bool set_memory_policy(const std::vector<int>& nodes) {
  const int most = *std::max_element(nodes.begin(), nodes.end());
  constexpr int kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> mask(static_cast<std::size_t>(most / kBits) + 1);
  for (const int node : nodes) mask[static_cast<std::size_t>(node / kBits)] |= 1UL << (node % kBits);
  // Preferred, not bound: a full node must not end the program. The kernel takes one bit less than it is told.
  return ::syscall(SYS_set_mempolicy, nodes.size() == 1 ? kPreferred : kInterleave, mask.data(),
                   mask.size() * kBits + 1) == 0;
}

}  // namespace

NumaPolicy parse_numa_policy(std::string_view name) {
  if (name == "none") return NumaPolicy::kNone;
  if (name == "distribute") return NumaPolicy::kDistribute;
  if (name == "isolate") return NumaPolicy::kIsolate;
  throw Error(fmt::format("--numa: '{}' is no policy; there are none, distribute and isolate", name),
              ErrorKind::kUsage);
}

std::vector<NumaNode> read_numa_nodes(const Topology& topology, const std::filesystem::path& root) {
  std::vector<int> usable;
  for (const LogicalCpu& cpu : topology.cpus)
    if (cpu.allowed) usable.push_back(cpu.id);
  const std::filesystem::path folder = root / "sys/devices/system/node";
  std::vector<NumaNode> nodes;
  const auto online = read_line(folder / "online");
  for (const int id : parse_cpu_list(online.value_or(""))) {
    const auto list = read_line(folder / fmt::format("node{}", id) / "cpulist");
    if (!list) continue;
    const auto all = parse_cpu_list(*list);
    NumaNode node{id, {}};
    std::ranges::set_intersection(all, usable, std::back_inserter(node.cpus));
    if (!node.cpus.empty()) nodes.push_back(std::move(node));  // others hold memory only, or are not for us
  }
  if (nodes.empty()) nodes.push_back({0, usable});
  return nodes;
}

NumaPlan plan_numa(NumaPolicy policy, const std::vector<NumaNode>& nodes) {
  NumaPlan plan;
  plan.policy = policy;
  if (policy == NumaPolicy::kNone || nodes.size() < 2) return plan;
  if (policy == NumaPolicy::kDistribute) {
    for (const NumaNode& node : nodes) {
      plan.cpus.push_back(node.cpus);
      plan.memory_nodes.push_back(node.id);
    }
    plan.why = fmt::format("threads spread over {} memory nodes", nodes.size());
    return plan;
  }
  const auto largest = std::ranges::max_element(nodes, {}, [](const NumaNode& node) { return node.cpus.size(); });
  plan.cpus.push_back(largest->cpus);
  plan.memory_nodes.push_back(largest->id);
  plan.why = fmt::format("on memory node {} of {}", largest->id, nodes.size());
  return plan;
}

std::string apply_numa(const NumaPlan& plan) {
  if (plan.memory_nodes.empty()) return {};
  if (plan.cpus.size() == 1 && !pin(plan.cpus[0]))
    return fmt::format("--numa: the system does not let us choose processors ({})", std::strerror(errno));
  if (!set_memory_policy(plan.memory_nodes))
    return fmt::format("--numa: the system does not let us choose where memory comes from ({})", std::strerror(errno));
  return {};
}

void place_worker(const NumaPlan& plan, int worker) {
  // A refusal leaves the thread where the scheduler puts it: slower, not wrong.
  if (!plan.cpus.empty()) static_cast<void>(pin(plan.cpus[static_cast<std::size_t>(worker) % plan.cpus.size()]));
}

}  // namespace hk::engine
