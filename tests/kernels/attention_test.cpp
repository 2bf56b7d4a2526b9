// Attention over KV pages at every usable ISA level against a float64 reference; bits do not depend on the company of
// queries.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace hk::kernels {
namespace {

struct Shape {
  std::size_t head_size, value_size, positions;
};

class Attention : public testing::TestWithParam<const KernelTable*> {};

double half_step(KvType type) { return type == KvType::kF16 ? 1.0 / 1024 : 1e-6; }

TEST_P(Attention, AgreesWithReferenceOverSeveralPages) {
  const KernelTable& table = *GetParam();
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    for (const auto& [head_size, value_size, positions] : {Shape{64, 64, 600}, Shape{16, 16, 1}, Shape{80, 80, 256},
                                                           Shape{33, 7, 257}, Shape{128, 96, 300}, Shape{6, 10, 17}}) {
      for (const float softcap : {0.0F, 2.0F}) {
        const std::size_t pages = (positions + kKvPage - 1) / kKvPage;
        std::vector<std::vector<float>> k(positions), v(positions);
        std::vector<std::vector<std::uint8_t>> k_pages(pages), v_pages(pages);
        for (auto& page : k_pages) page.assign(kKvPage * head_size * kv_type_bytes(type), 0);
        for (auto& page : v_pages) page.assign(kKvPage * value_size * kv_type_bytes(type), 0);
        for (std::size_t p = 0; p < positions; ++p) {
          k[p].resize(head_size);
          v[p].resize(value_size);
          for (float& x : k[p]) x = normal(random);
          for (float& x : v[p]) x = normal(random);
          table.store_key(k[p].data(), head_size, type, p % kKvPage, k_pages[p / kKvPage].data());
          table.store_value(v[p].data(), value_size, type, p % kKvPage, v_pages[p / kKvPage].data());
        }
        constexpr std::size_t kN = 7;
        std::vector<std::vector<float>> q(kN, std::vector<float>(head_size)), acc(kN, std::vector<float>(value_size)),
            page_acc = acc;
        std::vector<float> max(kN, -INFINITY), sum(kN, 0.0F), page_max(kN), page_sum(kN);
        std::vector<std::size_t> from(kN), to(kN);
        std::vector<const float*> q_pointers;
        std::vector<float*> acc_pointers;
        for (std::size_t i = 0; i < kN; ++i) {
          for (float& x : q[i]) x = normal(random) / std::sqrt(static_cast<float>(head_size));
          q_pointers.push_back(q[i].data());
          acc_pointers.push_back(page_acc[i].data());
          to[i] = positions - std::min<std::size_t>(positions - 1, i * 3);          // causal
          from[i] = i % 2 == 0 ? 0 : to[i] - std::min<std::size_t>(to[i], 40 * i);  // window
        }
        for (std::size_t page = 0; page < pages; ++page) {
          std::vector<std::uint16_t> first(kN), last(kN);
          for (std::size_t i = 0; i < kN; ++i) {
            const auto clip = [&](std::size_t p) {
              return static_cast<std::uint16_t>(p < page * kKvPage ? 0 : std::min(p - page * kKvPage, kKvPage));
            };
            first[i] = clip(from[i]);
            last[i] = clip(to[i]);
          }
          const AttendPageArgs args{k_pages[page].data(),
                                    v_pages[page].data(),
                                    type,
                                    head_size,
                                    value_size,
                                    kN,
                                    q_pointers.data(),
                                    first.data(),
                                    last.data(),
                                    softcap,
                                    nullptr,
                                    nullptr,
                                    page_max.data(),
                                    page_sum.data(),
                                    acc_pointers.data()};
          table.attend_page(args);
          for (std::size_t i = 0; i < kN; ++i) {
            // alone: same bits
            float one_max, one_sum;
            std::vector<float> one_acc(value_size);
            float* one_pointer = one_acc.data();
            AttendPageArgs one = args;
            one.n = 1;
            one.q = &q_pointers[i];
            one.first = &first[i];
            one.last = &last[i];
            one.max = &one_max;
            one.sum = &one_sum;
            one.acc = &one_pointer;
            table.attend_page(one);
            ASSERT_EQ(one_max, page_max[i]);
            ASSERT_EQ(one_sum, page_sum[i]);
            ASSERT_EQ(std::memcmp(one_acc.data(), page_acc[i].data(), value_size * 4), 0);
            table.attend_merge(&max[i], &sum[i], acc[i].data(), page_max[i], page_sum[i], page_acc[i].data(),
                               value_size);
          }
        }
        for (std::size_t i = 0; i < kN; ++i) {
          std::vector<double> expected(value_size, 0.0);
          double largest = -INFINITY, total = 0;
          std::vector<double> scores;
          for (std::size_t p = from[i]; p < to[i]; ++p) {
            double s = 0;
            for (std::size_t d = 0; d < head_size; ++d) s += double{q[i][d]} * double{k[p][d]};
            if (softcap > 0) s = softcap * std::tanh(s / softcap);
            scores.push_back(s);
            largest = std::max(largest, s);
          }
          for (std::size_t p = from[i]; p < to[i]; ++p) {
            const double e = std::exp(scores[p - from[i]] - largest);
            total += e;
            for (std::size_t d = 0; d < value_size; ++d) expected[d] += e * double{v[p][d]};
          }
          if (from[i] >= to[i]) {
            EXPECT_EQ(sum[i], 0.0F);
            continue;
          }
          for (std::size_t d = 0; d < value_size; ++d) {
            const float got = acc[i][d] / sum[i];
            ASSERT_TRUE(std::isfinite(got));
            ASSERT_NEAR(got, expected[d] / total, 4 * half_step(type)) << "query " << i << ", dimension " << d;
          }
        }
      }
    }
  }
}

TEST_P(Attention, PositionBiasIsAddedPerDistance) {
  const KernelTable& table = *GetParam();
  constexpr std::size_t kHead = 4;
  std::vector<float> k_page(kKvPage * kHead), v_page(kKvPage);
  for (std::size_t p = 0; p < 3; ++p) {
    const float key[kHead] = {0, 0, 0, 0};
    const auto value = static_cast<float>(p);
    table.store_key(key, kHead, KvType::kF32, p, k_page.data());
    table.store_value(&value, 1, KvType::kF32, p, v_page.data());
  }
  const float q[kHead] = {1, 2, 3, 4};
  const float* q_pointer = q;
  const std::uint16_t first = 0, last = 3;
  const float slope = 0.5F;
  const std::int32_t distance = -2;  // the query stands at position 2
  float max, sum, acc;
  float* acc_pointer = &acc;
  table.attend_page({k_page.data(), v_page.data(), KvType::kF32, kHead, 1, 1, &q_pointer, &first, &last, 0, &slope,
                     &distance, &max, &sum, &acc_pointer});
  const double e1 = std::exp(-0.5), e2 = std::exp(-1.0);
  EXPECT_FLOAT_EQ(max, 0);
  EXPECT_NEAR(sum, 1 + e1 + e2, 1e-6);
  EXPECT_NEAR(acc, 2 + e1, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Levels, Attention, testing::ValuesIn(usable_levels().begin(), usable_levels().end()),
                         [](const auto& param_info) { return std::string(param_info.param->level); });

}  // namespace
}  // namespace hk::kernels
