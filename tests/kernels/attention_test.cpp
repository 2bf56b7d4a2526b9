// Attention over KV pages of every type at every usable ISA level against a float64 reference; bits do not depend on
// the company of queries.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/kernels/attention_pages.h"

namespace hk::kernels {
namespace {

using test::attend;
using test::Query;
using test::StoredHead;

class Attention : public testing::TestWithParam<const KernelTable*> {};

std::vector<Query> make_queries(std::size_t n, const StoredHead& head, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<Query> queries;
  for (std::size_t i = 0; i < n; ++i) {
    Query query{std::vector<float>(head.head_size), 0, head.positions - std::min(head.positions - 1, 3 * i), 0};
    for (float& x : query.x) x = 1.5F * normal(random) / std::sqrt(static_cast<float>(head.head_size));
    if (i % 2 == 1) query.from = query.to - std::min(query.to, 40 * i);  // a window
    query.slope = 0.01F * static_cast<float>(i);
    queries.push_back(query);
  }
  return queries;
}

void check(const KernelTable& table, KvType type, std::size_t head_size, std::size_t value_size, std::size_t positions,
           std::size_t n, float softcap, bool slopes) {
  SCOPED_TRACE(testing::Message() << kv_type_name(type) << ", head " << head_size << ", value " << value_size << ", "
                                  << positions << " positions, " << n << " queries");
  std::mt19937 random(static_cast<unsigned>(head_size + positions));
  const StoredHead head(table, type, head_size, value_size, positions, random);
  const auto queries = make_queries(n, head, random);
  const auto results = attend(table, head, queries, softcap, slopes);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> q(queries[i].x.begin(), queries[i].x.end());
    if (type == KvType::kQ8_0) q = test::rounded_query(table, queries[i].x);
    const auto exact = exact_attention(head, q, queries[i], static_cast<double>(softcap), slopes);
    // Scores are sums of up to 256 products below 1, exact to about 1e-6; so are weights, and their mean.
    const double tolerance = 2e-5 + (type == KvType::kQ8_0 ? exact.rounding : 0);
    for (std::size_t d = 0; d < value_size; ++d)
      ASSERT_NEAR(results.acc[i][d] / results.sum[i], exact.mean[d], tolerance) << "query " << i << ", dimension " << d;
    // alone: the same bits
    const auto alone = attend(table, head, {queries[i]}, softcap, slopes);
    ASSERT_EQ(alone.max[0], results.max[i]);
    ASSERT_EQ(alone.sum[0], results.sum[i]);
    ASSERT_EQ(alone.acc[0], results.acc[i]) << "query " << i;
  }
}

TEST_P(Attention, AgreesWithReferenceAtAllSizesOfHeads) {
  for (const KvType type : kKvTypes) {
    for (const std::size_t size : {32, 64, 80, 96, 112, 128, 256})
      check(*GetParam(), type, size, size, 300, 9, 0, false);
    check(*GetParam(), type, 192, 128, 270, 5, 0, false);
    check(*GetParam(), type, 33, 7, 257, 5, 0, false);
    check(*GetParam(), type, 6, 10, 17, 3, 0, false);
    check(*GetParam(), type, 1, 1, 2, 2, 0, false);
    check(*GetParam(), type, 48, 136, 40, 2, 0, false);
  }
}

TEST_P(Attention, AgreesWithReferenceAtAllLengths) {
  for (const KvType type : kKvTypes) {
    for (const std::size_t positions : {1, 2, 3, 15, 16, 17, 63, 64, 65, 255, 256, 257, 511, 512, 513, 600})
      check(*GetParam(), type, 64, 48, positions, 3, 0, false);
  }
}

TEST_P(Attention, AgreesWithReferenceForAnyNumberOfQueries) {
  for (const KvType type : kKvTypes) {
    for (const std::size_t n : {1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 31, 32, 33, 70})
      check(*GetParam(), type, 40, 24, 280, n, 0, false);
  }
}

TEST_P(Attention, SoftCapAndPositionBias) {
  for (const KvType type : kKvTypes) {
    check(*GetParam(), type, 64, 64, 300, 7, 2, false);
    check(*GetParam(), type, 64, 64, 300, 7, 0, true);
    check(*GetParam(), type, 36, 20, 130, 13, 5, true);
  }
}

TEST_P(Attention, ThoseThatSeeNothingGiveNothing) {
  std::mt19937 random(3);
  for (const KvType type : kKvTypes) {
    const StoredHead head(*GetParam(), type, 16, 16, 100, random);
    auto queries = make_queries(5, head, random);
    queries[1].from = queries[1].to = 50;
    queries[3].from = queries[3].to = 0;
    const auto results = attend(*GetParam(), head, queries, 0, false);
    for (const std::size_t i : {1, 3}) {
      EXPECT_EQ(results.sum[i], 0.0F);
      EXPECT_EQ(results.max[i], -INFINITY);
      EXPECT_EQ(results.acc[i], std::vector<float>(16, 0.0F));
    }
    EXPECT_GE(results.sum[0], 1.0F);
  }
}

TEST_P(Attention, HugeAndTinyScoresNeitherOverflowNorVanish) {
  std::mt19937 random(4);
  for (const KvType type : kKvTypes) {
    const StoredHead head(*GetParam(), type, 64, 64, 200, random);
    for (const float factor : {1e-30F, 300.0F, 1e6F}) {
      auto queries = make_queries(3, head, random);
      for (Query& query : queries) {
        for (float& x : query.x) x *= factor;
      }
      const auto results = attend(*GetParam(), head, queries, 0, false);
      for (std::size_t i = 0; i < queries.size(); ++i) {
        EXPECT_GE(results.sum[i], 1.0F);
        EXPECT_LE(results.sum[i], 200.0F);
        for (const float x : results.acc[i]) ASSERT_LE(std::abs(x), 5 * 200.0F);
      }
    }
  }
}

/// A number that is none, where a query sees it, must show; where it does not, it must not.
TEST_P(Attention, NotANumberShowsWhereItIsSeen) {
  std::mt19937 random(5);
  for (const KvType type : kKvTypes) {
    for (const bool in_key : {true, false}) {
      StoredHead head(*GetParam(), type, 32, 32, 40, random);
      const auto queries = make_queries(1, head, random);
      const auto sound = attend(*GetParam(), head, queries, 0, false);
      std::vector<float> bad(32, 1.0F);
      bad[5] = NAN;
      const auto store = [&](std::size_t position) {
        if (in_key) {
          GetParam()->store_key(bad.data(), 32, type, position, head.k[0].data());
        } else {
          GetParam()->store_value(bad.data(), 32, type, position, head.v[0].data());
        }
      };
      store(45);  // behind the last position, in a vector that is read
      const auto same = attend(*GetParam(), head, queries, 0, false);
      EXPECT_EQ(same.acc, sound.acc) << kv_type_name(type);
      store(20);
      const auto shown = attend(*GetParam(), head, queries, 0, false);
      EXPECT_TRUE(std::isnan(shown.acc[0][5] / shown.sum[0])) << kv_type_name(type) << (in_key ? " key" : " value");
    }
  }
}

/// Numbers that are whole multiples of their scales: the dot product is exact, on every level.
TEST_P(Attention, IntegerScoresAreExact) {
  std::mt19937 random(6);
  std::uniform_int_distribution<int> any(-127, 127);
  for (const std::size_t size : {32, 64, 96, 160}) {
    StoredHead head(*GetParam(), KvType::kQ8_0, size, size, 16, random);
    Query query{std::vector<float>(size), 0, 1, 0};
    std::vector<float> key(size);
    for (int round = 0; round < 20; ++round) {
      std::int64_t dot = 0;
      for (std::size_t d = 0; d < size; ++d) {
        const int a = d % 32 == 0 ? 127 : any(random), b = d % 32 == 1 ? -127 : any(random);
        query.x[d] = static_cast<float>(a);
        key[d] = static_cast<float>(b);
        dot += a * b;
      }
      GetParam()->store_key(key.data(), size, KvType::kQ8_0, 0, head.k[0].data());
      const auto result = attend(*GetParam(), head, {query}, 0, false);
      EXPECT_EQ(result.max[0], static_cast<float>(dot)) << size;
      EXPECT_EQ(result.sum[0], 1.0F);
    }
  }
}

/// What an int8 cache loses of attention's result. Values of variance 1: codes are off by a step of about 2.7 / 127
/// over the square root of 12, 0.006, and a mean of many positions by less.
TEST_P(Attention, EightBitCacheLosesLittle) {
  std::mt19937 random(7);
  const StoredHead wide(*GetParam(), KvType::kF32, 128, 128, 500, random);
  std::mt19937 again(7);
  const StoredHead narrow(*GetParam(), KvType::kQ8_0, 128, 128, 500, again);
  const auto queries = make_queries(8, wide, random);
  const auto expected = attend(*GetParam(), wide, queries, 0, false),
             got = attend(*GetParam(), narrow, queries, 0, false);
  double squares = 0;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    for (std::size_t d = 0; d < 128; ++d)
      squares += std::pow(got.acc[i][d] / got.sum[i] - expected.acc[i][d] / expected.sum[i], 2);
  }
  EXPECT_LT(std::sqrt(squares / (8 * 128)), 0.006);
  EXPECT_GT(squares, 0);
}

INSTANTIATE_TEST_SUITE_P(Levels, Attention, testing::ValuesIn(usable_levels().begin(), usable_levels().end()),
                         [](const auto& param_info) { return std::string(param_info.param->level); });

}  // namespace
}  // namespace hk::kernels
