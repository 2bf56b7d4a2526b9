// Memory nodes: which processors belong to which, and where threads and their memory go by a policy.
//
// Layer: engine/runtime. Reads sysfs below an injectable root and uses two system calls; there is no need for a
// library. What it decides about is our own: threads, keys and values, buffers, a private copy of the weights. Mapped
// weights lie where the page cache put them when somebody first read them, and a policy matters for them only while
// they are being read.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runtime/topology.h"

namespace hk::engine {

enum class NumaPolicy {
  kNone,        ///< the system decides
  kDistribute,  ///< threads evenly over the nodes and kept there; pages of memory in turn from each
  kIsolate,     ///< everything on one node: the one with most of the processors we may use
};
/// "none", "distribute", "isolate". Throws hk::Error (usage) naming the option.
NumaPolicy parse_numa_policy(std::string_view name);

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;  ///< online and in our affinity mask
};
/// Nodes with processors that we may use, by number. A machine that says nothing about nodes has one with all of them.
std::vector<NumaNode> read_numa_nodes(const Topology& topology, const std::filesystem::path& root = "/");

struct NumaPlan {
  NumaPolicy policy = NumaPolicy::kNone;
  /// Where threads may run: thread i of a pool on cpus[i % size]. Empty: wherever they could before.
  std::vector<std::vector<int>> cpus;
  std::vector<int> memory_nodes;  ///< of our own pages; empty: the system's choice
  std::string why;                ///< "threads spread over 2 memory nodes"; "" when nothing is to be done
};
NumaPlan plan_numa(NumaPolicy policy, const std::vector<NumaNode>& nodes);

/// For the calling thread and those it makes: memory from the plan's nodes, and with a single set of processors that
/// one. Call it before threads and buffers are made. Returns what the system refused, a sentence; "" when all is well.
std::string apply_numa(const NumaPlan& plan);
/// Keeps the calling thread, which is number `worker` of a pool, on its processors. For ThreadPool's on_start.
void place_worker(const NumaPlan& plan, int worker);

}  // namespace hk::engine
