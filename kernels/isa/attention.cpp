// Attention of one ISA level: one KV page against the queries that share its head, and the merge of partial results.
//
// Keys are interleaved by 16 positions, so scores have positions as lanes and need no horizontal sum; values are summed
// with the value's dimensions as lanes. Sums over dimensions and over positions run in order, whatever the number of
// queries.
#include "kernels/isa/level.h"
#include "kernels/isa/math.h"

namespace hk::kernels {
namespace {

inline constexpr int kParts = static_cast<int>(kKeyGroup) / W;  // vectors for 16 positions
inline constexpr int kQueries = 4;  // queries handled together: each K and V value is converted once
inline constexpr float kNothing = -__builtin_inff();

template <KvType kType>
HK_INLINE vf load_kv(const void* base, std::size_t index) {
  if constexpr (kType == KvType::kF32) {
    return load_f(static_cast<const float*>(base) + index);
  } else {
    return load_half(static_cast<const std::uint16_t*>(base) + index);
  }
}

/// The `count` < W values at `index`, zeros behind them.
template <KvType kType>
HK_INLINE vf load_kv_first(const void* base, std::size_t index, int count) {
  if constexpr (kType == KvType::kF32) {
    return load_first(static_cast<const float*>(base) + index, count);
  } else {
    alignas(64) std::uint16_t words[W] = {};
    for (int i = 0; i < count; ++i) words[i] = static_cast<const std::uint16_t*>(base)[index + i];
    return load_half(words);
  }
}

/// Scores of N queries against the G key groups from `group` on.
template <KvType kType, int N, int G>
HK_INLINE void score_groups(const AttendPageArgs& args, const float* const* q, std::size_t group,
                            float (*scores)[kKvPage]) {
  vf sum[N][G][kParts] = {};
  const std::size_t span = args.head_size * kKeyGroup;
  for (std::size_t d = 0; d < args.head_size; ++d) {
    for (int g = 0; g < G; ++g) {
      for (int part = 0; part < kParts; ++part) {
        const vf k = load_kv<kType>(args.k, (group + g) * span + d * kKeyGroup + part * W);
        for (int i = 0; i < N; ++i) sum[i][g][part] = fma(set_f(q[i][d]), k, sum[i][g][part]);
      }
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int g = 0; g < G; ++g) {
      for (int part = 0; part < kParts; ++part)
        store_f(&scores[i][(group + g) * kKeyGroup + part * W], sum[i][g][part]);
    }
  }
}

/// Soft cap, position bias, mask, then exp(score - max) in place. `from`, `to`: positions covered, multiples of 16.
HK_INLINE void exponentials(const AttendPageArgs& args, std::size_t query, std::size_t from, std::size_t to,
                            float* scores) {
  const std::size_t first = args.first[query], last = args.last[query];
  if (args.softcap > 0) {
    for (std::size_t j = from; j < to; j += W)
      store_f(scores + j, tanh_f(load_f(scores + j) / args.softcap) * args.softcap);
  }
  if (args.slope != nullptr) {
    for (std::size_t j = first; j < last; ++j) {
      scores[j] += args.slope[query] * static_cast<float>(args.distance[query] + static_cast<std::int32_t>(j));
    }
  }
  for (std::size_t j = from; j < to && j < first; ++j) scores[j] = kNothing;
  for (std::size_t j = last > from ? last : from; j < to; ++j) scores[j] = kNothing;
  vf largest = set_f(kNothing);
  for (std::size_t j = from; j < to; j += W) largest = max_f(load_f(scores + j), largest);
  const float max = max_lanes(largest);
  if (!(max > kNothing)) {  // nothing visible (or only NaN: let it through below)
    bool visible = false;
    for (std::size_t j = first; j < last; ++j) visible = visible || scores[j] != kNothing;
    if (!visible) {
      args.max[query] = kNothing;
      args.sum[query] = 0;
      for (std::size_t j = from; j < to; ++j) scores[j] = 0;
      return;
    }
  }
  vf sum{};
  for (std::size_t j = from; j < to; j += W) {
    const vf e = exp_f(load_f(scores + j) - max);
    store_f(scores + j, e);
    sum = sum + e;
  }
  args.max[query] = max;
  args.sum[query] = sum_lanes(sum);
}

/// acc = sum over positions of weight * value, for N queries and C vectors of dimensions (or the last `count` < W
/// ones).
template <KvType kType, int N, int C>
HK_INLINE void weigh_values(const AttendPageArgs& args, float* const* out, std::size_t from, std::size_t to,
                            std::size_t dim, int count, const float (*scores)[kKvPage]) {
  vf acc[N][C] = {};
  for (std::size_t j = from; j < to; ++j) {
    for (int c = 0; c < C; ++c) {
      const std::size_t index = j * args.value_size + dim + c * W;
      const vf v = count == W ? load_kv<kType>(args.v, index) : load_kv_first<kType>(args.v, index, count);
      for (int i = 0; i < N; ++i) acc[i][c] = fma(set_f(scores[i][j]), v, acc[i][c]);
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int c = 0; c < C; ++c) store_some(out[i] + dim + c * W, acc[i][c], count);
  }
}

template <KvType kType, int N>
HK_INLINE void attend_queries(const AttendPageArgs& args, std::size_t query) {
  std::size_t first = kKvPage, last = 0;
  for (int i = 0; i < N; ++i) {
    if (args.first[query + i] >= args.last[query + i]) continue;
    if (args.first[query + i] < first) first = args.first[query + i];
    if (args.last[query + i] > last) last = args.last[query + i];
  }
  alignas(64) float scores[N][kKvPage];
  const std::size_t from = first / kKeyGroup * kKeyGroup;
  const std::size_t to = first >= last ? from : round_up(last, kKeyGroup);
  const float* const* q = args.q + query;
  constexpr int G = 4 / N > 0 ? 4 / N : 1;  // four independent sums hide the latency of the multiply-add
  std::size_t group = from / kKeyGroup;
  for (; group + G <= to / kKeyGroup; group += G) score_groups<kType, N, G>(args, q, group, scores);
  for (; group < to / kKeyGroup; ++group) score_groups<kType, N, 1>(args, q, group, scores);
  for (int i = 0; i < N; ++i) exponentials(args, query + i, from, to, scores[i]);
  float* const* out = args.acc + query;
  std::size_t dim = 0;
  for (; dim + 4 * W <= args.value_size; dim += 4 * W)
    weigh_values<kType, N, 4>(args, out, first, last, dim, W, scores);
  for (; dim + W <= args.value_size; dim += W) weigh_values<kType, N, 1>(args, out, first, last, dim, W, scores);
  if (dim < args.value_size) {
    weigh_values<kType, N, 1>(args, out, first, last, dim, static_cast<int>(args.value_size - dim), scores);
  }
}

template <KvType kType>
void attend(const AttendPageArgs& args) {
  std::size_t i = 0;
  for (; i + kQueries <= args.n; i += kQueries) attend_queries<kType, kQueries>(args, i);
  for (; i + 2 <= args.n; i += 2) attend_queries<kType, 2>(args, i);
  for (; i < args.n; ++i) attend_queries<kType, 1>(args, i);
}

}  // namespace

namespace HK_LEVEL {

void store_key(const float* k, std::size_t head_size, KvType type, std::size_t position, void* page) {
  const std::size_t base = position / kKeyGroup * kKeyGroup * head_size + position % kKeyGroup;
  if (type == KvType::kF32) {
    for (std::size_t d = 0; d < head_size; ++d) static_cast<float*>(page)[base + d * kKeyGroup] = k[d];
    return;
  }
  for_lanes(head_size, [&](std::size_t d, int count) HK_LAMBDA_INLINE {
    alignas(64) std::uint16_t words[W];
    store_half(words, load_some(k + d, count));
    for (int i = 0; i < count; ++i) static_cast<std::uint16_t*>(page)[base + (d + i) * kKeyGroup] = words[i];
  });
}

void store_value(const float* v, std::size_t value_size, KvType type, std::size_t position, void* page) {
  if (type == KvType::kF32) {
    __builtin_memcpy(static_cast<float*>(page) + position * value_size, v, value_size * sizeof(float));
    return;
  }
  auto* out = static_cast<std::uint16_t*>(page) + position * value_size;
  for_lanes(value_size, [&](std::size_t d, int count) HK_LAMBDA_INLINE {
    alignas(64) std::uint16_t words[W];
    store_half(words, load_some(v + d, count));
    for (int i = 0; i < count; ++i) out[d + i] = words[i];
  });
}

void attend_page(const AttendPageArgs& args) {
  if (args.type == KvType::kF32) {
    attend<KvType::kF32>(args);
  } else {
    attend<KvType::kF16>(args);
  }
}

void attend_merge(float* max, float* sum, float* acc, float page_max, float page_sum, const float* page_acc,
                  std::size_t value_size) {
  if (page_sum == 0) return;  // nothing visible in the page
  const float largest = page_max > *max ? page_max : *max;
  // exp of one lane, by the same polynomial as everywhere
  const float keep = *sum == 0 ? 0.0f : exp_f(set_f(*max - largest))[0];
  const float take = exp_f(set_f(page_max - largest))[0];
  *max = largest;
  *sum = *sum * keep + page_sum * take;
  for_lanes(value_size, [&](std::size_t d, int count) HK_LAMBDA_INLINE {
    const vf old = *sum == 0 ? vf{} : load_some(acc + d, count) * keep;
    store_some(acc + d, fma(load_some(page_acc + d, count), set_f(take), old), count);
  });
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
