// Speed tests on a model without weights: what is asked of it, equal checksums, cancelling. Times are not judged.
#include "engine/generate/speed_test.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/generate/toy_model.h"

namespace hk::engine {
namespace {

using test::ToyModel;

std::size_t tokens_asked(ToyModel& model) {
  const std::size_t sum = std::accumulate(model.calls.begin(), model.calls.end(), std::size_t{0});
  model.calls.clear();
  return sum;
}

TEST(SpeedTest, AsksForWhatTheTestSays) {
  ToyModel model(50);
  SpeedBed bed(model, {64});
  const auto sample = bed.run({.prompt = 10, .generate = 5, .depth = 0, .sequences = 1, .chunk = 4}, {});
  ASSERT_TRUE(sample);
  EXPECT_EQ(model.calls, (std::vector<std::size_t>{4, 4, 2, 1, 1, 1, 1, 1}));
  model.calls.clear();
  EXPECT_GT(sample->prompt_seconds, 0);
  EXPECT_GT(sample->generate_seconds, 0);
  EXPECT_EQ(sample->first_token_seconds, sample->prompt_seconds);

  ASSERT_TRUE(bed.run({.prompt = 3, .generate = 0, .sequences = 4}, {}));
  EXPECT_EQ(tokens_asked(model), 12U);
  const auto generated = bed.run({.prompt = 0, .generate = 7, .sequences = 3}, {});
  EXPECT_EQ(tokens_asked(model), 21U);
  EXPECT_EQ(generated->prompt_seconds, 0);
}

TEST(SpeedTest, TheDepthIsComputedOnce) {
  ToyModel model(50);
  SpeedBed bed(model, {64});
  const SpeedTest test{.prompt = 2, .generate = 3, .depth = 20};
  ASSERT_TRUE(bed.prepare(test, {}));
  EXPECT_EQ(tokens_asked(model), 20U);
  const auto first = bed.run(test, {});
  EXPECT_EQ(tokens_asked(model), 5U);
  const auto again = bed.run(test, {});
  EXPECT_EQ(tokens_asked(model), 5U);
  EXPECT_EQ(first->checksum, again->checksum);
  const auto deeper = bed.run({.prompt = 2, .generate = 3, .depth = 30}, {});
  EXPECT_EQ(tokens_asked(model), 15U);
  EXPECT_NE(first->checksum, deeper->checksum);
  const auto back = bed.run(test, {});
  EXPECT_EQ(tokens_asked(model), 25U);
  EXPECT_EQ(first->checksum, back->checksum);
}

TEST(SpeedTest, ChecksumsDependOnTheTestAlone) {
  ToyModel model(50);
  SpeedBed one(model, {64}), other(model, {60});
  const SpeedTest test{.prompt = 9, .generate = 8, .depth = 3, .sequences = 2};
  SpeedTest chunked = test;
  chunked.chunk = 1;
  const auto sum = one.run(test, {})->checksum;
  EXPECT_EQ(other.run(test, {})->checksum, sum);
  EXPECT_EQ(one.run(chunked, {})->checksum, sum);
  SpeedTest longer = test;
  ++longer.generate;
  EXPECT_NE(one.run(longer, {})->checksum, sum);
}

TEST(SpeedTest, CallsBackBetweenReadingAndGenerating) {
  ToyModel model(50);
  SpeedBed bed(model, {64});
  std::size_t read = 0;
  ASSERT_TRUE(bed.run({.prompt = 6, .generate = 2}, {}, [&] { read = tokens_asked(model); }));
  EXPECT_EQ(read, 6U);
  EXPECT_EQ(tokens_asked(model), 2U);
}

TEST(SpeedTest, CanBeCancelledAnywhere) {
  ToyModel model(50);
  const SpeedTest test{.prompt = 4, .generate = 4, .depth = 4, .chunk = 2};
  for (int allowed = 0; allowed < 7; ++allowed) {
    SpeedBed bed(model, {64});
    int asked = 0;
    EXPECT_FALSE(bed.run(test, [&] { return asked++ >= allowed; })) << allowed;
    EXPECT_TRUE(bed.run(test, {}));
  }
}

TEST(SpeedTest, TooLongForTheContextIsAnError) {
  ToyModel model(50);
  SpeedBed bed(model, {16});
  EXPECT_THROW(bed.run({.prompt = 10, .generate = 10}, {}), hk::Error);
}

}  // namespace
}  // namespace hk::engine
