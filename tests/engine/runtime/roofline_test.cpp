// The roofline probe: figures exist and hang together; how fast they are is nobody's business here.
#include "engine/runtime/roofline.h"

#include <gtest/gtest.h>

namespace hk::engine {
namespace {

TEST(Summary, MedianAndSpread) {
  const Measured odd = summarize({5, 1, 3});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.lowest, 1);
  EXPECT_EQ(odd.highest, 5);
  EXPECT_EQ(odd.runs, 3U);
  EXPECT_EQ(summarize({4, 1, 2, 9}).median, 3);
  EXPECT_EQ(summarize({7}).median, 7);
  EXPECT_EQ(summarize({}).runs, 0U);
  EXPECT_EQ(summarize({}).median, 0);
}

TEST(Caches, LastLevelIsTheSumOfTheHighest) {
  Topology topology;
  EXPECT_EQ(last_level_cache_bytes(topology), 0U);
  topology.caches = {{1, "Data", 48 << 10, 8}, {1, "Instruction", 64 << 10, 8}, {2, "Unified", 1 << 20, 8}};
  EXPECT_EQ(last_level_cache_bytes(topology), std::size_t{8} << 20);
  topology.caches.insert(topology.caches.begin(), {3, "Unified", 32 << 20, 2});
  EXPECT_EQ(last_level_cache_bytes(topology), std::size_t{64} << 20);
  topology.caches = {{2, "Instruction", 1 << 20, 1}};
  EXPECT_EQ(last_level_cache_bytes(topology), 0U);
}

void expect_sane(const Measured& measured, std::size_t runs) {
  EXPECT_EQ(measured.runs, runs);
  EXPECT_GT(measured.lowest, 0);
  EXPECT_LE(measured.lowest, measured.median);
  EXPECT_LE(measured.median, measured.highest);
}

TEST(Roofline, MeasuresEveryLevelOnOneCoreAndAll) {
  ThreadPool pool(2);
  for (const kernels::KernelTable* table : kernels::usable_levels()) {
    SCOPED_TRACE(table->level);
    // short runs, and a buffer that is no multiple of what is read at a time
    RooflineProbe probe(*table, pool, {std::chrono::microseconds(200), (std::size_t{3} << 20) + 12345});
    EXPECT_EQ(probe.buffer_bytes() % kernels::kProbeReadUnit, 0U);
    EXPECT_GT(probe.buffer_bytes(), std::size_t{3} << 20);
    const Roofline roofline = probe.measure(3);
    EXPECT_EQ(roofline.level, table->level);
    EXPECT_EQ(roofline.threads, 2);
    for (const Peaks* peaks : {&roofline.one, &roofline.all}) {
      expect_sane(peaks->int8_dot, 3);
      expect_sane(peaks->f32_fma, 3);
      expect_sane(peaks->read, 3);
      if (table->probe.bf16_dot(1) != 0) {
        expect_sane(peaks->bf16_dot, 3);
      } else {
        EXPECT_EQ(peaks->bf16_dot.runs, 0U);
      }
    }
    EXPECT_EQ(probe.has(PeakKind::kBf16Dot), table->probe.bf16_dot(1) != 0);
    EXPECT_EQ(probe.run(PeakKind::kBf16Dot, Cores::kAll) > 0, probe.has(PeakKind::kBf16Dot));
  }
}

TEST(Roofline, ABufferSmallerThanOneUnitIsOneUnit) {
  ThreadPool pool(1);
  RooflineProbe probe(*kernels::usable_levels().front(), pool, {std::chrono::microseconds(50), 1});
  EXPECT_EQ(probe.buffer_bytes(), kernels::kProbeReadUnit);
  EXPECT_GT(probe.run(PeakKind::kRead, Cores::kOne), 0);
  EXPECT_EQ(probe.measure(0).one.read.runs, 0U);
}

}  // namespace
}  // namespace hk::engine
