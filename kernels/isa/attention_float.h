// Attention over pages of f32, f16 or bf16: tiles of queries against keys and values that become floats on the way.
//
// Part of the level sources (see attention_tile.h).
#pragma once

#include "kernels/isa/attention_tile.h"
#include "kernels/isa/kv_load.h"

namespace hk::kernels {
namespace {

// Queries that share a converted vector, and sums in registers at a time. Two multiply-adds a cycle with a latency of
// four keep eight sums busy; what is left of the registers holds keys and a query.
#if defined(HK_ISA_AVX512)
inline constexpr int kTile = 8, kSums = 16;  // of 32 registers
#elif defined(HK_ISA_AVX2)
inline constexpr int kTile = 6, kSums = 12;  // of 16
#elif defined(HK_ISA_NEON)
inline constexpr int kTile = 4, kSums = 16;  // of 32; 16 positions are four vectors
#else
inline constexpr int kTile = 2, kSums = 8;  // of 16
#endif

/// Scores of N queries against the G key groups from `group` on. `scores` is the first query's row of kKvPage.
template <KvType kType, int N, int G>
HK_INLINE void score_groups(const AttendPageArgs& args, const float* const* q, std::size_t group, float* scores) {
  vf sum[N][G][kParts] = {};
  const std::size_t span = args.head_size * kKeyGroup;
  for (std::size_t d = 0; d < args.head_size; ++d) {
    vf k[G][kParts];
    for (int g = 0; g < G; ++g) {
      ask_for<kType>(args.k, (group + G + g) * span + d * kKeyGroup);
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
void score_tile(const AttendPageArgs& args, std::size_t query, std::size_t from, std::size_t to, float* scores) {
  constexpr int G = power_below(kSums / (N * kParts));
  const float* const* q = args.q + query;
  std::size_t group = from / kKeyGroup;
  for (; group + G <= to / kKeyGroup; group += G) score_groups<kType, N, G>(args, q, group, scores);
  for (; group < to / kKeyGroup; ++group) score_groups<kType, N, 1>(args, q, group, scores);
}

/// Sums over positions of weight * value, for N queries and C vectors of dimensions from `dim` on; of the last vector
/// `count` lanes.
template <KvType kType, int N, int C>
HK_INLINE void weigh_vectors(const AttendPageArgs& args, float* const* out, Seen seen, std::size_t dim, int count,
                             const float* weights) {
  vf acc[N][C] = {};
  for (std::size_t j = seen.first; j < seen.last; ++j) {
    vf v[C];
    for (std::size_t ahead = 0; ahead < C * W; ahead += 64 / kv_element_bytes(kType))
      ask_for<kType>(args.v, (j + kPositionsAhead) * args.value_size + dim + ahead);
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

/// `vectors` <= kStrip vectors of dimensions from `dim` on.
template <KvType kType, int N>
void weigh_tile(const AttendPageArgs& args, std::size_t query, std::size_t dim, int vectors, float* weights) {
  float* const* out = args.acc + query;
  const Seen seen = seen_by(args, query, N);
  constexpr int kMost = power_below(kSums / N);
  for (; vectors > 0; vectors -= kMost, dim += kMost * W) {
    // the last vector of all may be cut by the end of the value
    const auto lanes = [&](int c) HK_LAMBDA_INLINE {
      const std::size_t left = args.value_size - dim - static_cast<std::size_t>((c - 1) * W);
      return left < W ? static_cast<int>(left) : W;
    };
    if (kMost >= 4 && vectors >= 4) {
      weigh_vectors<kType, N, kMost >= 4 ? 4 : 1>(args, out, seen, dim, lanes(4), weights);
    } else if (kMost >= 4 && vectors == 3) {
      weigh_vectors<kType, N, kMost >= 4 ? 3 : 1>(args, out, seen, dim, lanes(3), weights);
    } else if (kMost >= 2 && vectors >= 2) {
      weigh_vectors<kType, N, kMost >= 2 ? 2 : 1>(args, out, seen, dim, lanes(2), weights);
    } else {
      weigh_vectors<kType, N, 1>(args, out, seen, dim, lanes(1), weights);
    }
  }
}

/// The queries of one chunk; `args` holds nothing else.
template <KvType kType>
void attend_floats(const AttendPageArgs& args) {
  auto* scores = static_cast<float*>(args.scratch);
  weigh_positions<kTile>(args, scores,
                         [&](auto tile, std::size_t i, std::size_t from, std::size_t to, float* rows)
                             HK_LAMBDA_INLINE { score_tile<kType, tile.kValue>(args, i, from, to, rows); });
  const int vectors = static_cast<int>((args.value_size + W - 1) / W);
  for (int at = 0; at < vectors; at += kStrip) {
    const int some = vectors - at < kStrip ? vectors - at : kStrip;
    for_tiles<kTile>(args.n, [&](auto tile, std::size_t i) HK_LAMBDA_INLINE {
      weigh_tile<kType, tile.kValue>(args, i, static_cast<std::size_t>(at * W), some, scores + i * kKvPage);
    });
  }
}

}  // namespace
}  // namespace hk::kernels
