// Codebook tables: distinct points of the allowed values, byte order, the sign rule.
#include "kernels/quant/codebooks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <set>
#include <vector>

namespace hk::kernels {
namespace {

template <typename Word, std::size_t Count>
void expect_distinct_points(const Word (&grid)[Count], const std::set<int>& allowed) {
  const std::set<Word> points(std::begin(grid), std::end(grid));
  EXPECT_EQ(points.size(), Count);
  std::set<int> seen;
  for (const Word point : grid)
    for (std::size_t j = 0; j < sizeof(Word); ++j) seen.insert(static_cast<std::int8_t>(point >> (8 * j)));
  EXPECT_EQ(seen, allowed);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&grid) % 64, 0u);
}

TEST(QuantCodebooks, GridsHoldDistinctPointsOfTheirLevels) {
  expect_distinct_points(kIQ2XXSGrid, {8, 25, 43});
  expect_distinct_points(kIQ2XSGrid, {8, 25, 43});
  expect_distinct_points(kIQ2SGrid, {8, 25, 43});
  expect_distinct_points(kIQ1SGrid, {-1, 0, 1});
  expect_distinct_points(kIQ3XXSGrid, {4, 12, 20, 28, 36, 44, 52, 62});
  expect_distinct_points(kIQ3SGrid, {1, 3, 5, 7, 9, 11, 13, 15});
}

/// Every element of a packed point, looked up in the levels, must give the point.
template <typename Word, std::size_t Count>
void expect_packed(const Word (&grid)[Count], const std::uint16_t (&packed)[Count], const std::vector<int>& levels) {
  constexpr int kBits = 16 / sizeof(Word);
  for (std::size_t i = 0; i < Count; ++i) {
    for (std::size_t j = 0; j < sizeof(Word); ++j) {
      const unsigned level = packed[i] >> (8 * (j % 2) + kBits * (j / 2)) & ((1U << kBits) - 1U);
      ASSERT_LT(level, levels.size()) << i;
      EXPECT_EQ(levels[level], static_cast<std::int8_t>(grid[i] >> (8 * j))) << "point " << i << ", element " << j;
    }
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&packed) % 64, 0u);
}

TEST(QuantCodebooks, PackedPointsAreTheSamePoints) {
  expect_packed(kIQ2XXSGrid, kIQ2XXSPacked, {8, 25, 43});
  expect_packed(kIQ2XSGrid, kIQ2XSPacked, {8, 25, 43});
  expect_packed(kIQ2SGrid, kIQ2SPacked, {8, 25, 43});
  expect_packed(kIQ1SGrid, kIQ1SPacked, {-1, 0, 1});
  expect_packed(kIQ3XXSGrid, kIQ3XXSPacked, {4, 12, 20, 28, 36, 44, 52, 62});
  expect_packed(kIQ3SGrid, kIQ3SPacked, {1, 3, 5, 7, 9, 11, 13, 15});
}

TEST(QuantCodebooks, ElementZeroIsTheFirstByteInMemory) {
  // Point 1 of these grids differs from point 0 in its first element only.
  std::uint8_t bytes[8];
  std::memcpy(bytes, &kIQ2XXSGrid[1], 8);
  EXPECT_EQ(bytes[0], 43);
  EXPECT_EQ(bytes[1], 8);
  std::memcpy(bytes, &kIQ3SGrid[1], 4);
  EXPECT_EQ(bytes[0], 3);
  EXPECT_EQ(bytes[3], 1);
  std::memcpy(bytes, &kIQ1SGrid[1], 8);
  EXPECT_EQ(static_cast<std::int8_t>(bytes[0]), 1);
  EXPECT_EQ(static_cast<std::int8_t>(bytes[7]), -1);
}

TEST(QuantCodebooks, SignMasksAreEven) {
  for (unsigned i = 0; i < 128; ++i) {
    EXPECT_EQ(kSigns[i] & 127u, i);
    EXPECT_EQ(std::popcount(kSigns[i]) % 2, 0) << i;
  }
}

TEST(QuantCodebooks, E2M1ValuesAreTwiceTheFloatValues) {
  const double magnitudes[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (int code = 0; code < 8; ++code) {
    EXPECT_EQ(kE2M1Values[code], 2 * magnitudes[code]);
    EXPECT_EQ(kE2M1Values[code + 8], -2 * magnitudes[code]);
  }
}

TEST(QuantCodebooks, NonlinearValuesRise) {
  EXPECT_EQ(kIQ4NLValues[0], -127);
  EXPECT_EQ(kIQ4NLValues[15], 113);
  for (int code = 1; code < 16; ++code) EXPECT_GT(kIQ4NLValues[code], kIQ4NLValues[code - 1]);
}

}  // namespace
}  // namespace hk::kernels
