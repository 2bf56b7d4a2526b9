// Attention over pages of f32, f16 or bf16: tiles of queries against keys and values that become floats on the way.
//
// Part of the level sources (see attention_tile.h).
#pragma once

#include "kernels/isa/attention_tile.h"
#include "kernels/isa/kv_load.h"

namespace hk::kernels {
namespace {

// Queries that share a converted vector, and sums in registers at a time. Two multiply-adds a cycle with a latency of
// four keep eight sums busy; with more of them each broadcast value and each converted vector serves more often: on Zen
// 4, 16 sums of 4 queries took 0.83 of the time of 8. What is left of the registers holds keys and a query.
#if defined(HK_ISA_AVX512)
inline constexpr int kTile = 6, kSums = 24;  // of 32 registers
#elif defined(HK_ISA_AVX2)
inline constexpr int kTile = 6, kSums = 12;  // of 16
#elif defined(HK_ISA_NEON)
inline constexpr int kTile = 4, kSums = 16;  // of 32; 16 positions are four vectors
#else
inline constexpr int kTile = 2, kSums = 8;  // of 16
#endif

/// Vectors of keys or values that N queries meet together: as many as there are sums, so that what is broadcast of a
/// query serves often. Of one or two queries, which leave the arithmetic waiting, no more than a cache line of the
/// 16-bit types: more streams of memory at a time were slower.
template <int N>
inline constexpr int kVectors = power_below(N >= 4 || kSums / N < 32 / W ? kSums / N : 32 / W);

/// Scores of N queries against the G key groups from `group` on, `done` bytes into their span. `scores` is the first
/// query's row of kKvPage.
template <KvType kType, int N, int G>
HK_INLINE void score_groups(const AttendPageArgs& args, const float* const* q, std::size_t group, const Ahead& ahead,
                            std::size_t done, float* scores) {
  vf sum[N][G][kParts] = {};
  const std::size_t span = args.head_size * kKeyGroup;
  constexpr std::size_t kBytes = G * kKeyGroup * kv_element_bytes(kType);
  for (std::size_t d = 0; d < args.head_size; ++d) {
    ahead.ask(done + d * kBytes, kBytes);
    vf k[G][kParts];
    for (int g = 0; g < G; ++g) {
      for (int part = 0; part < kParts; ++part)
        k[g][part] = load_kv<kType>(args.k, (group + g) * span + d * kKeyGroup + part * W);
    }
    for (int i = 0; i < N; ++i) {
      const vf x = set_f(q[i][d]);
      for (int g = 0; g < G; ++g) {
        for (int part = 0; part < kParts; ++part) sum[i][g][part] = fma(x, k[g][part], sum[i][g][part]);
      }
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int g = 0; g < G; ++g) {
      for (int part = 0; part < kParts; ++part)
        store_f(scores + i * kKvPage + (group + g) * kKeyGroup + part * W, sum[i][g][part]);
    }
  }
}

template <KvType kType, int N>
void score_tile(const AttendPageArgs& args, std::size_t query, Part part, const Ahead& ahead, float* scores) {
  constexpr int kMost = kVectors<N> / kParts;
  constexpr int G = kMost > 1 ? kMost : 1;
  const float* const* q = args.q + query;
  const std::size_t bytes = args.head_size * kKeyGroup * kv_element_bytes(kType);
  const std::size_t last = round_up(part.end, kKeyGroup) / kKeyGroup;
  std::size_t group = part.begin / kKeyGroup, done = 0;
  for (; group + G <= last; group += G, done += G * bytes)
    score_groups<kType, N, G>(args, q, group, ahead, done, scores);
  if constexpr (G > 2) {
    if (group + 2 <= last) {
      score_groups<kType, N, 2>(args, q, group, ahead, done, scores);
      group += 2, done += 2 * bytes;
    }
  }
  for (; group < last; ++group, done += bytes) score_groups<kType, N, 1>(args, q, group, ahead, done, scores);
}

/// Adds to `out` the weight * value of the positions of a part, for N queries and C vectors of dimensions from `dim`
/// on; of the last vector `count` lanes.
template <KvType kType, int N, int C>
HK_INLINE void weigh_vectors(const AttendPageArgs& args, float* const* out, Part part, std::size_t dim, int count,
                             const float* weights, const Ahead& ahead) {
  vf acc[N][C];
  for (int i = 0; i < N; ++i) {
    for (int c = 0; c < C; ++c) acc[i][c] = part.first ? vf{} : load_some(out[i] + dim + c * W, c + 1 == C ? count : W);
  }
  constexpr std::size_t kBytes = C * W * kv_element_bytes(kType);
  const std::size_t done = dim * (part.end - part.begin) * kv_element_bytes(kType);
  for (std::size_t j = part.begin; j < part.end; ++j) {
    ahead.ask(done + (j - part.begin) * kBytes, kBytes);
    vf v[C];
    for (int c = 0; c < C; ++c) {
      const std::size_t index = j * args.value_size + dim + c * W;
      v[c] = c + 1 == C && count < W ? load_kv_first<kType>(args.v, index, count) : load_kv<kType>(args.v, index);
    }
    for (int i = 0; i < N; ++i) {
      const vf w = set_f(weights[i * kKvPage + j]);
      for (int c = 0; c < C; ++c) acc[i][c] = fma(w, v[c], acc[i][c]);
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int c = 0; c < C; ++c) store_some(out[i] + dim + c * W, acc[i][c], c + 1 == C ? count : W);
  }
}

template <KvType kType, int N>
void weigh_tile(const AttendPageArgs& args, std::size_t query, Part part, const Ahead& ahead, const float* weights) {
  float* const* out = args.acc + query;
  constexpr int C = kVectors<N>;
  std::size_t dim = 0;
  for (; dim + C * W <= args.value_size; dim += C * W)
    weigh_vectors<kType, N, C>(args, out, part, dim, W, weights, ahead);
  for (; dim < args.value_size; dim += W) {
    const std::size_t left = args.value_size - dim;
    weigh_vectors<kType, N, 1>(args, out, part, dim, left < W ? static_cast<int>(left) : W, weights, ahead);
  }
}

/// The queries of one chunk; `args` holds nothing else.
template <KvType kType>
void attend_floats(const AttendPageArgs& args) {
  auto* scores = static_cast<float*>(args.scratch);
  const auto span_bytes = [](std::size_t size) HK_LAMBDA_INLINE { return kSpan * size * kv_element_bytes(kType); };
  weigh_positions<kTile>(args, span_bytes(args.head_size), scores,
                         [&](auto tile, std::size_t i, Part part, float* rows, const Ahead& ahead)
                             HK_LAMBDA_INLINE { score_tile<kType, tile.kValue>(args, i, part, ahead, rows); });
  clear_unseeing(args);
  for_spans<kTile>(args, args.v, span_bytes(args.value_size), args.next,
                   [&](auto tile, std::size_t i, Part part, const Ahead& ahead) HK_LAMBDA_INLINE {
                     weigh_tile<kType, tile.kValue>(args, i, part, ahead, scores + i * kKvPage);
                   });
}

}  // namespace
}  // namespace hk::kernels
