// What a benchmark notices of others: counters of a made-up machine before and after.
#include "engine/runtime/disturbance.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/engine/runtime/fake_machine.h"

namespace hk::engine {
namespace {

using test::FakeMachine;

TEST(Disturbance, ReadsTheTicksOfAllProcessors) {
  FakeMachine machine;
  EXPECT_FALSE(read_cpu_ticks(machine.root()));
  machine.file("proc/stat", "cpu  100 10 50 1000 5 2 3 40 7 7\ncpu0 1 1 1 1 1 1 1 1 1 1");
  const auto ticks = read_cpu_ticks(machine.root());
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->busy, 165U);
  EXPECT_EQ(ticks->steal, 40U);
  EXPECT_EQ(ticks->all, 1210U);
  machine.file("proc/stat", "cpu  1 2 3 4");  // old kernels end early
  EXPECT_EQ(read_cpu_ticks(machine.root())->steal, 0U);
  machine.file("proc/stat", "intr 1 2 3 4");
  EXPECT_FALSE(read_cpu_ticks(machine.root()));
  machine.file("proc/stat", "cpu  1 x");
  EXPECT_FALSE(read_cpu_ticks(machine.root()));
}

TEST(Disturbance, TellsStolenTime) {
  FakeMachine machine;
  machine.file("proc/stat", "cpu  100 0 0 1000 0 0 0 0 0 0");
  const DisturbanceWatch watch(machine.root());
  machine.file("proc/stat", "cpu  100 0 0 1180 0 0 0 20 0 0");
  const Disturbance found = watch.sum();
  EXPECT_DOUBLE_EQ(found.steal, 0.1);
  ASSERT_FALSE(found.warnings().empty());
  EXPECT_NE(found.warnings()[0].find("took away 10.0 %"), std::string::npos) << found.warnings()[0];
}

TEST(Disturbance, TellsOtherPrograms) {
  FakeMachine machine;
  machine.file("proc/stat", "cpu  100 0 0 1000 0 0 0 0 0 0");
  const DisturbanceWatch watch(machine.root());
  machine.file("proc/stat", "cpu  10100 0 0 1000 0 0 0 0 0 0");  // no tick was idle, and this test does nothing
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GT(watch.sum().others, 0.5);
}

TEST(Disturbance, TellsTheQuota) {
  FakeMachine machine;
  machine.cgroup2("/job").file("sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 1000");
  EXPECT_EQ(read_throttled_us(machine.root()), 1000U);
  const DisturbanceWatch watch(machine.root());
  machine.file("sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nthrottled_usec 900001000");
  EXPECT_EQ(watch.sum().throttled, 1);  // more than all the time there was
}

TEST(Disturbance, KnowsNothingWhereNothingIsSaid) {
  FakeMachine machine;
  EXPECT_FALSE(read_throttled_us(machine.root()));
  const Disturbance found = DisturbanceWatch(machine.root()).sum();
  EXPECT_EQ(found.steal, 0);
  EXPECT_EQ(found.others, 0);
  EXPECT_EQ(found.throttled, 0);
  EXPECT_EQ(found.clock_change, 0);  // one look
  EXPECT_TRUE(found.warnings().empty());
}

TEST(Disturbance, TheClockChangesBetweenZeroAndOne) {
  DisturbanceWatch watch;
  for (int i = 0; i < 3; ++i) watch.look();
  EXPECT_GE(watch.sum().clock_change, 0);
  EXPECT_LT(watch.sum().clock_change, 1);
}

}  // namespace
}  // namespace hk::engine
