// Memory nodes of made-up machines, the plans made of them, and what this machine lets a process do.
#include "engine/runtime/numa.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <iostream>
#include <thread>

#include "base/error.h"
#include "fake_machine.h"

namespace hk::engine {
namespace {

using test::FakeMachine;

/// Two nodes of four processors each, and one that holds memory only.
void two_nodes(FakeMachine& machine) {
  machine.online("0-7")
      .file("sys/devices/system/node/online", "0-2")
      .file("sys/devices/system/node/node0/cpulist", "0-3")
      .file("sys/devices/system/node/node1/cpulist", "4-7")
      .file("sys/devices/system/node/node2/cpulist", "");
}

std::vector<NumaNode> nodes_of(const FakeMachine& machine, std::vector<int> affinity) {
  return read_numa_nodes(read_topology(machine.root(), std::move(affinity)), machine.root());
}

TEST(Numa, NodesHoldTheProcessorsWeMayUse) {
  FakeMachine machine;
  two_nodes(machine);
  auto nodes = nodes_of(machine, {0, 1, 2, 3, 4, 5, 6, 7});
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].cpus, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(nodes[1].id, 1);
  nodes = nodes_of(machine, {3, 4, 5});
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].cpus, std::vector<int>{3});
  EXPECT_EQ(nodes[1].cpus, (std::vector<int>{4, 5}));
  EXPECT_EQ(nodes_of(machine, {5}).size(), 1U);
}

TEST(Numa, AMachineWithoutNodesHasOne) {
  FakeMachine machine;
  machine.online("0-1");
  const auto nodes = nodes_of(machine, {0, 1});
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].cpus, (std::vector<int>{0, 1}));
  for (const auto policy : {NumaPolicy::kNone, NumaPolicy::kDistribute, NumaPolicy::kIsolate}) {
    const auto plan = plan_numa(policy, nodes);
    EXPECT_TRUE(plan.cpus.empty());
    EXPECT_TRUE(plan.memory_nodes.empty());
    EXPECT_EQ(plan.why, "");
    EXPECT_EQ(apply_numa(plan), "");
  }
}

TEST(Numa, BrokenFilesAreNoNodes) {
  FakeMachine machine;
  machine.online("0-1")
      .file("sys/devices/system/node/online", "0-1")
      .file("sys/devices/system/node/node0/cpulist", "x-y,-3")
      .file("sys/devices/system/node/node7/cpulist", "0-1");  // not online
  ASSERT_EQ(nodes_of(machine, {0, 1}).size(), 1U);
  EXPECT_EQ(nodes_of(machine, {0, 1})[0].cpus, (std::vector<int>{0, 1}));
}

TEST(Numa, Plans) {
  FakeMachine machine;
  two_nodes(machine);
  const auto all = nodes_of(machine, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_TRUE(plan_numa(NumaPolicy::kNone, all).cpus.empty());
  const auto spread = plan_numa(NumaPolicy::kDistribute, all);
  ASSERT_EQ(spread.cpus.size(), 2U);
  EXPECT_EQ(spread.cpus[1], (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(spread.memory_nodes, (std::vector<int>{0, 1}));
  EXPECT_NE(spread.why.find("2 memory nodes"), std::string::npos);
  // The node with most of what we may use.
  const auto alone = plan_numa(NumaPolicy::kIsolate, nodes_of(machine, {3, 4, 5}));
  ASSERT_EQ(alone.cpus.size(), 1U);
  EXPECT_EQ(alone.cpus[0], (std::vector<int>{4, 5}));
  EXPECT_EQ(alone.memory_nodes, std::vector<int>{1});
}

TEST(Numa, Names) {
  EXPECT_EQ(parse_numa_policy("none"), NumaPolicy::kNone);
  EXPECT_EQ(parse_numa_policy("distribute"), NumaPolicy::kDistribute);
  EXPECT_EQ(parse_numa_policy("isolate"), NumaPolicy::kIsolate);
  EXPECT_THROW(parse_numa_policy("numactl"), Error);
}

/// On this machine, whatever it is: a plan for one of its processors keeps a thread there.
TEST(Numa, AThreadStaysWhereItIsPut) {
  const Topology topology = read_topology();
  std::vector<int> usable;
  for (const LogicalCpu& cpu : topology.cpus)
    if (cpu.allowed) usable.push_back(cpu.id);
  NumaPlan plan;
  plan.policy = NumaPolicy::kDistribute;
  for (const int cpu : usable) plan.cpus.push_back({cpu});
  for (int worker = 0; worker < 2 * static_cast<int>(usable.size()); ++worker) {
    int seen = -1;
    std::thread([&] {
      place_worker(plan, worker);
      seen = sched_getcpu();
    }).join();
    EXPECT_EQ(seen, usable[static_cast<std::size_t>(worker) % usable.size()]);
  }
}

TEST(Numa, MemoryOfOneNodeCanBeAskedFor) {
  NumaPlan plan;
  plan.policy = NumaPolicy::kIsolate;
  plan.memory_nodes = {0};  // the one that every machine has
  std::string refused;
  std::thread([&] { refused = apply_numa(plan); }).join();
  if (!refused.empty()) {
    std::cerr << "\n*** SKIPPED: " << refused << " ***\n\n";
    GTEST_SKIP() << refused;
  }
  plan.memory_nodes = {900};
  std::thread([&] { refused = apply_numa(plan); }).join();
  EXPECT_NE(refused.find("--numa"), std::string::npos) << "node 900 was accepted";
}

}  // namespace
}  // namespace hk::engine
