// Machines that are not here: SMT, hybrids, offline processors, affinity, quotas of both cgroup versions.
#include "engine/runtime/topology.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "fake_machine.h"

namespace hk::engine {
namespace {

using test::FakeMachine;
using Cpus = std::vector<int>;

Cpus first(int n) {
  Cpus cpus(static_cast<std::size_t>(n));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

// `cores` cores with two threads each; the siblings of core i are i and i + cores, as on most servers.
void smt(FakeMachine& machine, int cores) {
  machine.online("0-" + std::to_string(2 * cores - 1));
  for (int i = 0; i < 2 * cores; ++i)
    machine.cpu(i, "topology/core_cpus_list", std::to_string(i % cores) + "," + std::to_string(i % cores + cores));
}

TEST(CpuList, Parses) {
  EXPECT_EQ(parse_cpu_list("0-3,8"), (Cpus{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_cpu_list("5"), Cpus{5});
  EXPECT_EQ(parse_cpu_list("3,1,2-3"), (Cpus{1, 2, 3}));
  EXPECT_EQ(parse_cpu_list(""), Cpus{});
  EXPECT_EQ(parse_cpu_list("-"), Cpus{});
  EXPECT_EQ(parse_cpu_list("x,4-,2"), (Cpus{2}));
  EXPECT_LE(parse_cpu_list("0-999999999999").size(), 8192u);
  EXPECT_EQ(parse_cpu_list("9-3"), Cpus{});
}

TEST(Threads, CountsCoresNotSiblings) {
  FakeMachine machine;
  smt(machine, 4);
  const auto topology = read_topology(machine.root(), first(8));
  EXPECT_EQ(topology.cpus.size(), 8u);
  const auto choice = default_threads(topology);
  EXPECT_EQ(choice.threads, 4);
  EXPECT_EQ(choice.why, "4 physical cores, no CPU quota");
}

TEST(Threads, OldNameOfTheSiblingFile) {
  FakeMachine machine;
  machine.online("0-3");
  for (int i = 0; i < 4; ++i) machine.cpu(i, "topology/thread_siblings_list", i < 2 ? "0-1" : "2-3");
  EXPECT_EQ(default_threads(read_topology(machine.root(), first(4))).threads, 2);
}

TEST(Threads, AffinityMaskLimitsTheCores) {
  FakeMachine machine;
  smt(machine, 4);
  const auto both_of_one_core = default_threads(read_topology(machine.root(), Cpus{1, 5}));
  EXPECT_EQ(both_of_one_core.threads, 1);
  EXPECT_EQ(both_of_one_core.why, "1 physical core in the affinity mask (2 of 8 CPUs), no CPU quota");
  EXPECT_EQ(default_threads(read_topology(machine.root(), Cpus{1, 2, 7})).threads, 3);
}

TEST(Threads, OfflineProcessorsDoNotCount) {
  FakeMachine machine;
  smt(machine, 4);
  machine.online("0-1,4-5");
  const auto choice = default_threads(read_topology(machine.root(), first(8)));
  EXPECT_EQ(choice.threads, 2);
  EXPECT_EQ(choice.why, "2 physical cores, no CPU quota");
}

TEST(Threads, IntelHybridByKernelLists) {
  FakeMachine machine;  // 2 fast cores with two threads, 4 slow ones with one
  machine.online("0-7").file("sys/devices/cpu_core/cpus", "0-3").file("sys/devices/cpu_atom/cpus", "4-7");
  for (int i = 0; i < 8; ++i)
    machine.cpu(i, "topology/core_cpus_list", i < 2 ? "0-1" : i < 4 ? "2-3" : std::to_string(i));
  auto choice = default_threads(read_topology(machine.root(), first(8)));
  EXPECT_EQ(choice.threads, 2);
  EXPECT_EQ(choice.why, "2 fast of 6 physical cores, no CPU quota");
  // Pinned to slow cores: those are all there is.
  EXPECT_EQ(default_threads(read_topology(machine.root(), Cpus{4, 5, 6})).threads, 3);
}

TEST(Threads, ArmByCapacity) {
  FakeMachine machine;
  machine.online("0-7");
  for (int i = 0; i < 8; ++i) machine.cpu(i, "cpu_capacity", i < 4 ? "378" : i < 7 ? "871" : "1024");
  EXPECT_EQ(default_threads(read_topology(machine.root(), first(8))).threads, 4);
  EXPECT_EQ(default_threads(read_topology(machine.root(), Cpus{0, 1, 2})).threads, 3);
}

TEST(Threads, HybridByHighestClock) {
  FakeMachine machine;
  machine.online("0-5");
  for (int i = 0; i < 6; ++i) {
    machine.cpu(i, "cpu_capacity", "1024");  // present but silent, as on kernels that do not measure it
    machine.cpu(i, "cpufreq/cpuinfo_max_freq", i < 2 ? "5100000" : i < 3 ? "4900000" : "3500000");
  }
  const auto choice = default_threads(read_topology(machine.root(), first(6)));
  EXPECT_EQ(choice.threads, 3);
  EXPECT_EQ(choice.why, "3 fast of 6 physical cores, no CPU quota");
}

TEST(Threads, ClocksKnownForSomeCoresOnlyAreIgnored) {
  FakeMachine machine;
  machine.online("0-3").cpu(0, "cpufreq/cpuinfo_max_freq", "5000000").cpu(1, "cpufreq/cpuinfo_max_freq", "100000");
  EXPECT_EQ(default_threads(read_topology(machine.root(), first(4))).threads, 4);
}

TEST(Quota, Version2OfOwnGroup) {
  FakeMachine machine;
  smt(machine, 8);
  machine.cgroup2("/user/job").file("sys/fs/cgroup/user/job/cpu.max", "350000 100000");
  const auto topology = read_topology(machine.root(), first(16));
  ASSERT_TRUE(topology.cpu_quota);
  EXPECT_DOUBLE_EQ(*topology.cpu_quota, 3.5);
  EXPECT_TRUE(topology.cpu_quota_source.ends_with("user/job/cpu.max"));
  const auto choice = default_threads(topology);
  EXPECT_EQ(choice.threads, 3);
  EXPECT_EQ(choice.why, "8 physical cores, CPU quota 3.5");
}

TEST(Quota, Version2ParentsBindToo) {
  FakeMachine machine;
  smt(machine, 8);
  machine.cgroup2("/a/b/c")
      .file("sys/fs/cgroup/a/b/c/cpu.max", "max 100000")
      .file("sys/fs/cgroup/a/b/cpu.max", "600000 100000")
      .file("sys/fs/cgroup/a/cpu.max", "100000 50000");
  const auto topology = read_topology(machine.root(), first(16));
  EXPECT_DOUBLE_EQ(topology.cpu_quota.value_or(0), 2.0);
  EXPECT_EQ(default_threads(topology).threads, 2);
}

TEST(Quota, Version2MaxIsNone) {
  FakeMachine machine;
  smt(machine, 2);
  machine.cgroup2("/").file("sys/fs/cgroup/cpu.max", "max 100000");
  EXPECT_FALSE(read_topology(machine.root(), first(4)).cpu_quota);
}

TEST(Quota, ContainerSeesItsGroupAsTheMountPoint) {
  FakeMachine machine;
  smt(machine, 4);
  // The mount shows /docker/1234 of the host; the process is named relative to the host's root.
  machine.file("proc/self/cgroup", "0::/docker/1234/sub")
      .file("proc/self/mountinfo", "30 23 0:26 /docker/1234 /sys/fs/cgroup ro - cgroup2 cgroup rw")
      .file("sys/fs/cgroup/cpu.max", "200000 100000")
      .file("sys/fs/cgroup/sub/cpu.max", "max 100000");
  EXPECT_DOUBLE_EQ(read_topology(machine.root(), first(8)).cpu_quota.value_or(0), 2.0);
}

TEST(Quota, GroupOutsideTheNamespaceFallsBackToTheMountPoint) {
  FakeMachine machine;
  smt(machine, 4);
  machine.cgroup2("/../../elsewhere").file("sys/fs/cgroup/cpu.max", "100000 100000");
  EXPECT_DOUBLE_EQ(read_topology(machine.root(), first(8)).cpu_quota.value_or(0), 1.0);
}

TEST(Quota, Version1) {
  FakeMachine machine;
  smt(machine, 4);
  machine.file("proc/self/cgroup", "7:memory:/job\n4:cpu,cpuacct:/job\n0::/")
      .file("proc/self/mountinfo",
            "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
            "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset")
      .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "250000")
      .file("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  const auto topology = read_topology(machine.root(), first(8));
  EXPECT_DOUBLE_EQ(topology.cpu_quota.value_or(0), 2.5);
  EXPECT_EQ(default_threads(topology).threads, 2);
}

TEST(Quota, BelowOneIsOneThread) {
  FakeMachine machine;
  smt(machine, 4);
  machine.cgroup2("/x").file("sys/fs/cgroup/x/cpu.max", "20000 100000");
  EXPECT_EQ(default_threads(read_topology(machine.root(), first(8))).threads, 1);
}

TEST(Quota, NonsenseIsNone) {
  for (const char* text : {"", "abc", "0 100000", "-5 100000", "100000 0", "100000 x"}) {
    FakeMachine machine;
    smt(machine, 2);
    machine.cgroup2("/").file("sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(read_topology(machine.root(), first(4)).cpu_quota) << text;
  }
}

TEST(Topology, CachesAndModel) {
  FakeMachine machine;
  smt(machine, 2);
  machine.file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n");
  for (int i = 0; i < 4; ++i) {
    const std::string core = std::to_string(i % 2) + "," + std::to_string(i % 2 + 2);
    machine.cpu(i, "cache/index0/level", "1").cpu(i, "cache/index0/type", "Data").cpu(i, "cache/index0/size", "48K");
    machine.cpu(i, "cache/index0/shared_cpu_list", core);
    machine.cpu(i, "cache/index1/level", "3")
        .cpu(i, "cache/index1/type", "Unified")
        .cpu(i, "cache/index1/size", "32768K");
    machine.cpu(i, "cache/index1/shared_cpu_list", "0-3");
  }
  const auto topology = read_topology(machine.root(), first(4));
  EXPECT_EQ(topology.cpu_model, "Some CPU @ 3 GHz");
  ASSERT_EQ(topology.caches.size(), 2u);
  EXPECT_EQ(topology.caches[0].bytes, 48u << 10);
  EXPECT_EQ(topology.caches[0].instances, 2u);
  EXPECT_EQ(topology.caches[1].bytes, 32u << 20);
  EXPECT_EQ(topology.caches[1].instances, 1u);
}

TEST(Topology, AnEmptyMachineStillHasOneThread) {
  FakeMachine machine;
  const auto topology = read_topology(machine.root(), Cpus{0});
  EXPECT_EQ(topology.cpus.size(), 1u);
  EXPECT_EQ(default_threads(topology).threads, 1);
}

TEST(Topology, RealAffinityMaskOfAChild) {
  // In a child, because the mask of this process belongs to the other tests as well.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) _exit(10);
    int one = 0;
    while (!CPU_ISSET(one, &mask)) ++one;
    CPU_ZERO(&mask);
    CPU_SET(one, &mask);
    if (sched_setaffinity(0, sizeof mask, &mask) != 0) _exit(11);
    const auto topology = read_topology();
    _exit(topology.allowed_cpus() == 1 && default_threads(topology).threads == 1 ? 0 : 12);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace hk::engine
