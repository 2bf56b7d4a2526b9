// Self check, part three: keys and values into a page, attention over it, the merge of partial results.
#include <limits>

#include "kernels/quant/half.h"
#include "kernels/self_check_parts.h"

namespace hk::kernels::check {
namespace {

constexpr std::size_t kHead = 72, kValue = 41;  // whole vectors and a rest
constexpr std::size_t kPositions = 211, kQueries = 7;
constexpr float kSoftcap = 3.0F;

/// One page, and what it holds after rounding to its type.
struct Page {
  std::vector<std::uint8_t> k, v;
  std::vector<float> keys, values;
};

std::string name(const char* kernel, KvType type) { return std::string(kernel).append(" ").append(kv_type_name(type)); }

/// What a type of its own numbers keeps of x.
float stored(KvType type, float x) {
  if (type == KvType::kF16) return f16_to_f32(f32_to_f16(x));
  return type == KvType::kBf16 ? bf16_to_f32(f32_to_bf16(x)) : x;
}

/// Compares a row with what is in the page, and replaces it by that.
template <typename Element>
Result check_row(const std::string& kernel, const std::string& place, KvType type, float* row, std::size_t n,
                 std::size_t block, const Element& element) {
  for (std::size_t d = 0; d < n; ++d) {
    float peak = 0;
    for (std::size_t i = d / block * block; i < n && i < (d / block + 1) * block; ++i)
      peak = std::fmax(peak, std::fabs(row[i]));
    // half a code, whose scale is rounded up to bf16
    const double tolerance = type == KvType::kQ8_0 ? double{peak} / 127 * 0.505 : 0;
    const float found = element(d);
    if (auto wrong = compare(kernel.c_str(), place, found, stored(type, row[d]), tolerance)) return wrong;
  }
  for (std::size_t d = 0; d < n; ++d) row[d] = element(d);
  return std::nullopt;
}

Result fill_page(const KernelTable& table, KvType type, Page& page) {
  SampleRandom random(21);
  page.k.assign(key_page_bytes(type, kHead), 0);
  page.v.assign(value_page_bytes(type, kValue), 0);
  page.keys = values(kPositions * kHead, random);
  page.values = values(kPositions * kValue, random);
  for (std::size_t p = 0; p < kPositions; ++p) {
    table.store_key(page.keys.data() + p * kHead, kHead, type, p, page.k.data());
    table.store_value(page.values.data() + p * kValue, kValue, type, p, page.v.data());
  }
  for (std::size_t p = 0; p < kPositions; ++p) {
    const std::string place = "position " + std::to_string(p);
    if (auto wrong = check_row(name("store_key", type), place, type, page.keys.data() + p * kHead, kHead, kKeyBlock,
                               [&](std::size_t d) { return key_element(type, page.k.data(), kHead, p, d); }))
      return wrong;
    if (auto wrong =
            check_row(name("store_value", type), place, type, page.values.data() + p * kValue, kValue, kValueBlock,
                      [&](std::size_t d) { return value_element(type, page.v.data(), kValue, p, d); }))
      return wrong;
  }
  return std::nullopt;
}

/// Softmax over [first, last) and the mean of the values under it, in double.
std::vector<double> expected_mean(const Page& page, const float* q, std::size_t first, std::size_t last, bool softcap,
                                  const float* slope, std::int32_t distance) {
  std::vector<double> mean(kValue, 0.0), scores;
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t p = first; p < last; ++p) {
    double score = 0;
    for (std::size_t d = 0; d < kHead; ++d) score += double{q[d]} * double{page.keys[p * kHead + d]};
    if (softcap) score = kSoftcap * std::tanh(score / kSoftcap);
    if (slope != nullptr) score += double{*slope} * (distance + static_cast<std::int32_t>(p));
    scores.push_back(score);
    largest = std::fmax(largest, score);
  }
  for (std::size_t p = first; p < last; ++p) {
    const double weight = std::exp(scores[p - first] - largest);
    sum += weight;
    for (std::size_t d = 0; d < kValue; ++d) mean[d] += weight * double{page.values[p * kValue + d]};
  }
  for (double& m : mean) m /= sum;
  return mean;
}

/// The page in two parts, merged, for queries that see different stretches of it.
Result attend(const KernelTable& table, KvType type, const Page& page, bool softcap, bool slopes) {
  SampleRandom random(22);
  const auto q = values(kQueries * kHead, random, 0.15F);
  const auto slope = values(kQueries, random, 0.02F);
  constexpr std::size_t kStride = kValue + 3;
  std::vector<float> acc(kQueries * kStride, 0.0F), part(kQueries * kStride, kGuard);
  std::vector<float> max(kQueries, -std::numeric_limits<float>::infinity()), sum(kQueries, 0.0F), part_max(kQueries),
      part_sum(kQueries);
  std::uint16_t first[kQueries], last[kQueries];
  std::int32_t distance[kQueries];
  const float* q_rows[kQueries];
  float* part_rows[kQueries];
  std::size_t from[kQueries], to[kQueries];
  for (std::size_t i = 0; i < kQueries; ++i) {
    q_rows[i] = q.data() + i * kHead;
    part_rows[i] = part.data() + i * kStride;
    from[i] = i % 2 == 0 ? 0 : 13 * i;
    to[i] = kPositions - 5 * i;
    distance[i] = -static_cast<std::int32_t>(to[i]);
  }
  const std::string kernel = name("attend_page", type);
  // q8_0 rounds queries: scores of 72 dimensions are off by 0.01, the mean of a hundred values by a tenth of that.
  const double tolerance = type == KvType::kQ8_0 ? 1e-2 : 1e-5;
  std::vector<std::uint8_t> memory(attend_scratch_bytes(type, kHead) + 64);
  void* scratch = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  constexpr std::size_t kCut = 70;  // so that one query sees nothing of the first part
  for (const std::size_t begin : {std::size_t{0}, kCut}) {
    for (std::size_t i = 0; i < kQueries; ++i) {
      first[i] = static_cast<std::uint16_t>(from[i] > begin ? from[i] : begin);
      last[i] = static_cast<std::uint16_t>(begin == 0 ? kCut : to[i]);
    }
    table.attend_page({page.k.data(), page.v.data(), type, kHead, kValue, kQueries, q_rows, first, last,
                       softcap ? kSoftcap : 0.0F, slopes ? slope.data() : nullptr, slopes ? distance : nullptr,
                       part_max.data(), part_sum.data(), part_rows, scratch});
    for (std::size_t i = 0; i < kQueries; ++i) {
      for (std::size_t d = kValue; d < kStride; ++d) {
        if (part_rows[i][d] != kGuard) return Disagreement{kernel.c_str(), "it writes past the value"};
      }
      table.attend_merge(&max[i], &sum[i], acc.data() + i * kStride, part_max[i], part_sum[i], part_rows[i], kValue);
    }
  }
  for (std::size_t i = 0; i < kQueries; ++i) {
    const auto mean =
        expected_mean(page, q_rows[i], from[i], to[i], softcap, slopes ? &slope[i] : nullptr, distance[i]);
    for (std::size_t d = 0; d < kValue; ++d) {
      const std::string place = "query " + std::to_string(i) + ", dimension " + std::to_string(d) + " after the merge";
      if (auto wrong = compare(kernel.c_str(), place, acc[i * kStride + d] / sum[i], mean[d], tolerance)) return wrong;
    }
  }
  return std::nullopt;
}

/// The merge alone, so that a fault of it is not blamed on the page.
Result merge(const KernelTable& table) {
  SampleRandom random(23);
  auto acc = values(kValue, random);
  const auto other = values(kValue, random);
  float max = 0.5F, sum = 3.0F;
  std::vector<double> expected(kValue);
  const double keep = std::exp(0.5 - 1.25), take = 1;
  for (std::size_t d = 0; d < kValue; ++d) expected[d] = keep * double{acc[d]} + take * double{other[d]};
  acc.push_back(kGuard);
  table.attend_merge(&max, &sum, acc.data(), 1.25F, 2.0F, other.data(), kValue);
  if (auto wrong = compare("attend_merge", "largest score", max, 1.25, 0)) return wrong;
  if (auto wrong = compare("attend_merge", "sum", sum, 3 * keep + 2 * take, 1e-5)) return wrong;
  return compare_all("attend_merge", acc, expected, 2e-6, 1e-6);
}

}  // namespace

Result attention(const KernelTable& table) {
  if (auto wrong = merge(table)) return wrong;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kQ8_0}) {
    Page page;
    if (auto wrong = fill_page(table, type, page)) return wrong;
    for (const bool softcap : {false, true}) {
      for (const bool slopes : {false, true}) {
        if (auto wrong = attend(table, type, page, softcap, slopes)) return wrong;
      }
    }
  }
  return std::nullopt;
}

}  // namespace hk::kernels::check
