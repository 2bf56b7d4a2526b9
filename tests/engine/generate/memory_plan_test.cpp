// Memory plans against made-up limits: what fits, what is cut, what is refused, and that the numbers are said.
#include "engine/generate/memory_plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hk::engine {
namespace {

constexpr std::uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

/// A model with 16 KiB a position, in pages of 256.
MemoryNeeds needs() {
  return {700 * kMiB, 0, 30 * kMiB, [](std::size_t n) { return (n + 255) / 256 * 256 * std::uint64_t{16384}; }};
}

MemoryLimits machine(std::uint64_t available) {
  MemoryLimits limits;
  limits.private_now = 10 * kMiB;
  limits.machine.total = 16 * kGiB;
  limits.machine.available = available;
  return limits;
}

std::string refusal(const MemoryNeeds& what, const MemoryLimits& limits, std::size_t wanted, bool asked) {
  try {
    plan_memory(what, limits, wanted, asked);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
    return error.what();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MemoryPlan, WhatFitsIsLeftAlone) {
  for (const bool asked : {false, true}) {
    const auto plan = plan_memory(needs(), machine(8 * kGiB), 32768, asked);
    EXPECT_EQ(plan.context, 32768U);
    EXPECT_FALSE(plan.reduced);
    EXPECT_EQ(plan.state_at_first(), 4 * kMiB);
    EXPECT_EQ(plan.state_when_full(), 512 * kMiB);
    EXPECT_EQ(plan.private_when_full(), 552 * kMiB);
    EXPECT_TRUE(plan.remarks().empty());
    EXPECT_TRUE(has(plan.text(), "700.0 MiB mapped"));
    EXPECT_TRUE(has(plan.text(), "32768 tokens 4.0 MiB at first and 512.0 MiB when full"));
    EXPECT_TRUE(has(plan.text(), "7.50 GiB that are free"));
  }
}

TEST(MemoryPlan, ADefaultContextIsCutAndThatIsSaid) {
  // 320 MiB less a sixteenth are 300; 30 for the pass; 270 MiB hold 17280 positions, in whole pages 17152.
  const auto plan = plan_memory(needs(), machine(320 * kMiB), 131072, false);
  EXPECT_TRUE(plan.reduced);
  EXPECT_EQ(plan.context, 17152U);
  ASSERT_EQ(plan.remarks().size(), 1U);
  EXPECT_TRUE(has(plan.remarks()[0], "cut to 17152 tokens (268.0 MiB)")) << plan.remarks()[0];
  EXPECT_TRUE(has(plan.remarks()[0], "300.0 MiB that are free")) << plan.remarks()[0];
}

TEST(MemoryPlan, AContextThatWasAskedForIsRefusedWithWhatWouldFit) {
  const auto why = refusal(needs(), machine(320 * kMiB), 131072, true);
  EXPECT_TRUE(has(why, "131072 tokens takes 2.00 GiB")) << why;
  EXPECT_TRUE(has(why, "a forward pass 30.0 MiB")) << why;
  EXPECT_TRUE(has(why, "-c 17152")) << why;
}

TEST(MemoryPlan, NothingUsefulFits) {
  // 32 MiB less a sixteenth hold the pass but not 1024 positions.
  auto why = refusal(needs(), machine(40 * kMiB), 131072, false);
  EXPECT_TRUE(has(why, "1024 tokens takes 16.0 MiB")) << why;
  EXPECT_FALSE(has(why, "would fit")) << why;
  why = refusal(needs(), machine(16 * kMiB), 512, true);
  EXPECT_FALSE(has(why, "would fit")) << why;
  // A model that knows few positions only wants few.
  EXPECT_EQ(plan_memory(needs(), machine(48 * kMiB), 512, false).context, 512U);
}

TEST(MemoryPlan, TheControlGroupCounts) {
  MemoryLimits limits = machine(8 * kGiB);
  limits.machine.cgroup_limit = 512 * kMiB;
  limits.machine.cgroup_used = 192 * kMiB;
  const auto plan = plan_memory(needs(), limits, 131072, false);
  EXPECT_EQ(plan.context, 17152U);
  ASSERT_EQ(plan.remarks().size(), 2U);
  EXPECT_TRUE(has(plan.remarks()[0], "control group's limit of 512.0 MiB leaves")) << plan.remarks()[0];
  EXPECT_TRUE(has(plan.remarks()[1], "read from disk again and again")) << plan.remarks()[1];
  EXPECT_TRUE(has(plan.text(), "the control group 512.0 MiB"));
}

TEST(MemoryPlan, TheUsersLimitCountsWhatIsInUse) {
  MemoryLimits limits = machine(8 * kGiB);
  limits.asked = 300 * kMiB;  // 10 in use, 30 for the pass, 260 MiB for 16640 positions
  const auto plan = plan_memory(needs(), limits, 131072, false);
  EXPECT_EQ(plan.context, 16640U);
  EXPECT_LE(plan.private_when_full(), *limits.asked);
  EXPECT_TRUE(has(plan.remarks()[0], "--mem-limit 300.0 MiB leaves beside the 10.0 MiB in use")) << plan.remarks()[0];
  limits.asked = 5 * kMiB;
  EXPECT_TRUE(has(refusal(needs(), limits, 4096, false), "--mem-limit 5.0 MiB"));
  limits.asked = 100 * kGiB;  // more than there is: the machine decides
  EXPECT_TRUE(has(plan_memory(needs(), limits, 4096, false).room_name, "free on this machine"));
}

TEST(MemoryPlan, WeightsHeldInMemoryCount) {
  MemoryNeeds held = needs();
  held.private_weights = 700 * kMiB;
  held.mapped_weights = 0;
  const auto why = refusal(held, machine(700 * kMiB), 4096, false);
  EXPECT_TRUE(has(why, "the weights 700.0 MiB")) << why;
  EXPECT_EQ(plan_memory(held, machine(kGiB), 4096, false).context, 4096U);
}

TEST(MemoryPlan, AnUnknownMachineRefusesNothing) {
  MemoryNeeds huge = needs();
  huge.state = [](std::size_t) { return ~std::uint64_t{0}; };
  const auto plan = plan_memory(huge, {}, 4096, true);
  EXPECT_EQ(plan.context, 4096U);
  EXPECT_FALSE(plan.room);
  EXPECT_TRUE(has(refusal(huge, machine(8 * kGiB), 4096, true), "not enough memory"));
}

}  // namespace
}  // namespace hk::engine
