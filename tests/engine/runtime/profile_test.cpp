// Profiles: totals by stage and kind, events up to a limit, silence without a listener.
#include "engine/runtime/profile.h"

#include <gtest/gtest.h>

namespace hk::engine {
namespace {

TEST(Profile, NobodyListensByDefault) {
  EXPECT_EQ(Profile::active(), nullptr);
  StageTimer timer("norm");
  EXPECT_FALSE(timer.listening());
  timer.next("attention");
}

TEST(Profile, SumsStagesByNameAndKind) {
  Profile profile;
  for (int i = 0; i < 3; ++i) {
    StageTimer timer("product", "q4_k");
    EXPECT_TRUE(timer.listening());
    timer.add({100, 10, 0});
    timer.add({0, 0, 1});
    timer.next("attention");
    timer.next("product", "q8_0");
    timer.add({1, 2, 3});
  }
  ASSERT_EQ(profile.stages().size(), 3U);
  const auto& first = profile.stages()[0];
  EXPECT_EQ(first.name, "product");
  EXPECT_EQ(first.detail, "q4_k");
  EXPECT_EQ(first.calls, 3U);
  EXPECT_EQ(first.work.bytes, 300U);
  EXPECT_EQ(first.work.integer_macs, 30U);
  EXPECT_EQ(first.work.float_macs, 3U);
  EXPECT_EQ(profile.stages()[1].name, "attention");
  EXPECT_EQ(profile.stages()[1].work.bytes, 0U);
  EXPECT_EQ(profile.work().bytes, 303U);
  EXPECT_EQ(profile.work().float_macs, 12U);
  EXPECT_GE(profile.seconds(), 0);
  EXPECT_TRUE(profile.events().empty());
  EXPECT_EQ(profile.events_dropped(), 0U);
  profile.clear();
  EXPECT_TRUE(profile.stages().empty());
}

TEST(Profile, SpansHoldStagesAndCountApart) {
  { const SpanTimer unheard("pass"); }
  Profile profile(3);
  for (std::uint64_t layer = 0; layer < 4; ++layer) {
    const SpanTimer span("layer", layer);
    const SpanTimer half("attention half", layer, true);
    const StageTimer stage("attention");
  }
  EXPECT_EQ(profile.stages().size(), 1U);
  ASSERT_EQ(profile.span_totals().size(), 2U);  // inner ones end first
  EXPECT_EQ(profile.span_totals()[0].name, "attention half");
  EXPECT_TRUE(profile.span_totals()[0].of_layer);
  EXPECT_EQ(profile.span_totals()[0].calls, 4U);
  EXPECT_FALSE(profile.span_totals()[1].of_layer);
  EXPECT_GE(profile.span_totals()[1].seconds, profile.span_totals()[0].seconds);
  EXPECT_GE(profile.span_totals()[0].seconds, profile.seconds());
  ASSERT_EQ(profile.spans().size(), 3U);
  EXPECT_EQ(profile.spans()[2].number, 1U);
  EXPECT_LE(profile.spans()[1].begin, profile.spans()[0].begin);  // a layer holds its half
  EXPECT_GE(profile.spans()[1].end, profile.spans()[0].end);
  profile.clear();
  EXPECT_TRUE(profile.spans().empty() && profile.span_totals().empty());
}

TEST(Profile, KeepsTheFirstEvents) {
  Profile profile(4);
  for (int i = 0; i < 6; ++i) StageTimer timer(i % 2 == 0 ? "even" : "odd");
  ASSERT_EQ(profile.events().size(), 4U);
  EXPECT_EQ(profile.events_dropped(), 2U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(profile.events()[i].stage, i % 2);
    EXPECT_LE(profile.events()[i].begin, profile.events()[i].end);
    EXPECT_LE(profile.start(), profile.events()[i].begin);
  }
  EXPECT_EQ(profile.stages()[0].calls, 3U);
}

TEST(Profile, AnInnerOneListensAloneAndGivesBack) {
  Profile outer;
  {
    Profile inner;
    StageTimer("a").stop();
    EXPECT_EQ(inner.stages().size(), 1U);
  }
  EXPECT_TRUE(outer.stages().empty());
  outer.listen(false);
  StageTimer("b").stop();
  EXPECT_TRUE(outer.stages().empty());
  outer.listen(true);
  StageTimer("c").stop();
  EXPECT_EQ(outer.stages().size(), 1U);
}

}  // namespace
}  // namespace hk::engine
