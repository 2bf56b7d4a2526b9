// Medians, order-statistic intervals and paired ratios against values worked out by hand.
#include "engine/runtime/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace hk::engine {
namespace {

TEST(Statistics, OfNothing) {
  const Spread spread = spread_of({});
  EXPECT_EQ(spread.runs, 0U);
  EXPECT_EQ(spread.median, 0);
  EXPECT_EQ(spread.mean, 0);
}

TEST(Statistics, OfOneAndTwo) {
  const Spread one = spread_of({4});
  EXPECT_EQ(one.median, 4);
  EXPECT_EQ(one.deviation, 0);
  EXPECT_EQ(one.interval.low, 4);
  EXPECT_EQ(one.interval.high, 4);
  const Spread two = spread_of({6, 2});
  EXPECT_EQ(two.median, 4);
  EXPECT_DOUBLE_EQ(two.deviation, std::sqrt(8.0));
}

// The usual table for 95 %: nothing can be left out below 9 values, one at each end from 9, two from 12.
TEST(Statistics, IntervalOfTheMedian) {
  const auto left_out = [](std::size_t n) {
    std::vector<double> values(n);
    std::iota(values.begin(), values.end(), 0.0);
    const Spread spread = spread_of(values);
    EXPECT_EQ(spread.interval.low, static_cast<double>(n) - 1 - spread.interval.high);
    return spread.interval.low;
  };
  EXPECT_EQ(left_out(5), 0);
  EXPECT_EQ(left_out(8), 0);
  EXPECT_EQ(left_out(9), 1);
  EXPECT_EQ(left_out(11), 1);
  EXPECT_EQ(left_out(12), 2);
  EXPECT_EQ(left_out(20), 5);
  EXPECT_GT(left_out(2001), 900);
}

TEST(Statistics, PairsTellADifferenceThatSinglesHide) {
  // The machine gets three times as slow meanwhile; the second is always a tenth faster, give or take a percent.
  const std::vector<double> first = {100, 80, 60, 40, 33}, second = {110, 88.5, 65.8, 44.1, 36.2};
  const PairedRatio ratio = paired_ratio(first, second);
  EXPECT_NEAR(ratio.ratio, 1.1, 0.01);
  EXPECT_TRUE(ratio.differs());
  EXPECT_GT(ratio.interval.low, 1.08);
  EXPECT_LT(ratio.interval.high, 1.12);
  EXPECT_NEAR(paired_ratio(second, first).ratio, 1 / ratio.ratio, 1e-12);
}

TEST(Statistics, PairsTellNoDifferenceWhereThereIsNone) {
  const std::vector<double> first = {100, 80, 60, 40}, second = {101, 78, 61.5, 39.8};
  EXPECT_FALSE(paired_ratio(first, second).differs());
  EXPECT_FALSE(paired_ratio(first, first).differs());
  EXPECT_EQ(paired_ratio(first, first).ratio, 1);
}

TEST(Statistics, TooFewPairsSayNothing) {
  EXPECT_EQ(paired_ratio({}, {}).ratio, 1);
  const std::vector<double> one = {1}, two = {2, 5};
  const PairedRatio ratio = paired_ratio(one, two);
  EXPECT_EQ(ratio.ratio, 2);
  EXPECT_FALSE(ratio.differs());
  EXPECT_EQ(ratio.interval.high, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace hk::engine
