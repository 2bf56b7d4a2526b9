// Pages of keys and values with known contents, and attention over them in float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace hk::test {

using kernels::kKvPage;
using kernels::KvType;

/// Zeroed bytes that start on a cache line.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t bytes) : lines_((bytes + 63) / 64) {}
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(lines_.data()); }
  const std::uint8_t* data() const { return reinterpret_cast<const std::uint8_t*>(lines_.data()); }
  std::size_t size() const { return lines_.size() * 64; }

 private:
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  std::vector<Line> lines_;
};

/// Keys and values of `positions` positions of one head, as a level stores them, and what is then in the pages.
struct StoredHead {
  KvType type;
  std::size_t head_size, value_size, positions;
  std::vector<AlignedBytes> k, v;

  StoredHead(const kernels::KernelTable& table, KvType kind, std::size_t head, std::size_t value, std::size_t count,
             std::mt19937& random)
      : type(kind), head_size(head), value_size(value), positions(count) {
    std::normal_distribution<float> normal;
    std::vector<float> key(head), val(value);
    for (std::size_t p = 0; p < count; ++p) {
      if (p % kKvPage == 0) {
        k.emplace_back(kernels::key_page_bytes(kind, head));
        v.emplace_back(kernels::value_page_bytes(kind, value));
      }
      for (float& x : key) x = normal(random);
      for (float& x : val) x = normal(random);
      table.store_key(key.data(), head, kind, p % kKvPage, k.back().data());
      table.store_value(val.data(), value, kind, p % kKvPage, v.back().data());
    }
  }
  double key(std::size_t p, std::size_t d) const {
    return static_cast<double>(key_element(type, k[p / kKvPage].data(), head_size, p % kKvPage, d));
  }
  double value(std::size_t p, std::size_t d) const {
    return static_cast<double>(value_element(type, v[p / kKvPage].data(), value_size, p % kKvPage, d));
  }
};

/// One query and what it may see; the position it stands at is to - 1.
struct Query {
  std::vector<float> x;
  std::size_t from, to;
  float slope;
};

/// Running results of several queries.
struct Results {
  std::vector<float> max, sum;
  std::vector<std::vector<float>> acc;
};

/// What a call says of the scratch memory and of the page behind it changes no bit.
inline void expect_same_again(const kernels::KernelTable& table, kernels::AttendPageArgs args, const void* next) {
  std::vector<float> max(args.n), sum(args.n), values(args.n * args.value_size);
  std::vector<float*> acc(args.n);
  for (std::size_t i = 0; i < args.n; ++i) acc[i] = values.data() + i * args.value_size;
  const kernels::AttendPageArgs before = args;
  args.again = true;
  args.next = next;
  args.max = max.data();
  args.sum = sum.data();
  args.acc = acc.data();
  table.attend_page(args);
  EXPECT_EQ(std::memcmp(args.max, before.max, args.n * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(args.sum, before.sum, args.n * sizeof(float)), 0);
  for (std::size_t i = 0; i < args.n; ++i)
    EXPECT_EQ(std::memcmp(args.acc[i], before.acc[i], args.value_size * sizeof(float)), 0) << "query " << i;
}

/// Lets a level attend to all pages with the queries together, and merges.
inline Results attend(const kernels::KernelTable& table, const StoredHead& head, const std::vector<Query>& queries,
                      float softcap, bool slopes) {
  const std::size_t n = queries.size();
  constexpr float kGuard = -12345.0F;
  std::vector<const float*> q(n);
  std::vector<std::vector<float>> page_acc(n, std::vector<float>(head.value_size + 1, kGuard));
  std::vector<float*> acc(n);
  std::vector<float> page_max(n), page_sum(n), slope(n);
  std::vector<std::uint16_t> first(n), last(n);
  std::vector<std::int32_t> distance(n);
  AlignedBytes scratch(kernels::attend_scratch_bytes(head.type, head.head_size));
  Results results{std::vector<float>(n, -std::numeric_limits<float>::infinity()), std::vector<float>(n, 0.0F),
                  std::vector<std::vector<float>>(n, std::vector<float>(head.value_size, 0.0F))};
  for (std::size_t page = 0; page < head.k.size(); ++page) {
    const std::size_t base = page * kKvPage;
    for (std::size_t i = 0; i < n; ++i) {
      const auto clip = [&](std::size_t p) {
        return static_cast<std::uint16_t>(std::clamp(p, base, base + kKvPage) - base);
      };
      q[i] = queries[i].x.data();
      acc[i] = page_acc[i].data();
      first[i] = clip(queries[i].from);
      last[i] = clip(queries[i].to);
      slope[i] = queries[i].slope;
      distance[i] = static_cast<std::int32_t>(base) - static_cast<std::int32_t>(queries[i].to) + 1;
    }
    std::memset(scratch.data(), 0xFF, scratch.size());  // NaN: nothing is expected in there
    kernels::AttendPageArgs args{head.k[page].data(),
                                 head.v[page].data(),
                                 head.type,
                                 head.head_size,
                                 head.value_size,
                                 n,
                                 q.data(),
                                 first.data(),
                                 last.data(),
                                 softcap,
                                 slopes ? slope.data() : nullptr,
                                 slopes ? distance.data() : nullptr,
                                 page_max.data(),
                                 page_sum.data(),
                                 acc.data(),
                                 scratch.data()};
    table.attend_page(args);
    expect_same_again(table, args, head.k[(page + 1) % head.k.size()].data());
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(page_acc[i].back(), kGuard) << "written past the value";
      table.attend_merge(&results.max[i], &results.sum[i], results.acc[i].data(), page_max[i], page_sum[i],
                         page_acc[i].data(), head.value_size);
    }
  }
  return results;
}

/// The query as the integer kernels see it: rounded to int8 under a scale for 32 dimensions.
inline std::vector<double> rounded_query(const kernels::KernelTable& table, const std::vector<float>& x) {
  constexpr auto kFormat = kernels::ActivationFormat::kQ8x32;
  std::vector<float> padded((x.size() + 31) / 32 * 32, 0.0F);
  std::copy(x.begin(), x.end(), padded.begin());
  const auto layout = kernels::activation_layout(kFormat, padded.size());
  AlignedBytes record(layout.stride);
  table.quantize_row(kFormat, padded.data(), padded.size(), record.data());
  std::vector<double> q(x.size());
  for (std::size_t d = 0; d < q.size(); ++d) {
    float scale;
    std::memcpy(&scale, record.data() + layout.scales + 4 * (d / 32), 4);
    q[d] = static_cast<double>(scale) * static_cast<std::int8_t>(record.data()[d]);
  }
  return q;
}

struct Exact {
  std::vector<double> mean;  ///< of the values, under the softmax
  double rounding = 0;       ///< most that integer weights of 14 bits can change of it
};

inline Exact exact_attention(const StoredHead& head, const std::vector<double>& q, const Query& query, double softcap,
                             bool slopes) {
  std::vector<double> weights;
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t p = query.from; p < query.to; ++p) {
    double score = 0;
    for (std::size_t d = 0; d < q.size(); ++d) score += q[d] * head.key(p, d);
    if (softcap > 0) score = softcap * std::tanh(score / softcap);
    if (slopes)
      score += static_cast<double>(query.slope) * (static_cast<double>(p) - static_cast<double>(query.to - 1));
    weights.push_back(score);
    largest = std::max(largest, score);
  }
  Exact exact{std::vector<double>(head.value_size, 0.0)};
  std::vector<double> heaviest(head.k.size(), 0.0);  // weight times largest value, of each page
  for (std::size_t p = query.from; p < query.to; ++p) {
    const double weight = std::exp(weights[p - query.from] - largest);
    sum += weight;
    for (std::size_t d = 0; d < head.value_size; ++d) {
      exact.mean[d] += weight * head.value(p, d);
      heaviest[p / kKvPage] = std::max(heaviest[p / kKvPage], weight * std::abs(head.value(p, d)));
    }
  }
  for (double& m : exact.mean) m /= sum;
  // Every weight is off by half a step of 1/16383 of the heaviest, times a code of at most 127; scales are up to 1/128
  // too large.
  for (const double page : heaviest) exact.rounding += 0.5 / 16383 * 1.01 * page * static_cast<double>(kKvPage) / sum;
  return exact;
}

}  // namespace hk::test
