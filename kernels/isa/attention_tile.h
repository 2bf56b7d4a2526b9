// What attention has in common for all KV types: sizes of tiles, scratch memory, and the exponentials of scores.
//
// Part of the level sources (see vec.h). A call takes up to kQueryChunk queries at a time through three stages: scores
// of the whole page, exponentials, weighted values. In a stage keys or values are visited once while they lie in L1:
// all queries of the chunk meet a part of the page before the next part. Queries go in tiles, which share each
// converted vector. What a query gets does not depend on its company: its sums run over dimensions and over positions
// in order, and what only neighbours see has weight 0.
#pragma once

#include "kernels/isa/math.h"
#include "kernels/kernels.h"

namespace hk::kernels {
namespace {

inline constexpr int kParts = static_cast<int>(kKeyGroup) / W;  // vectors for 16 positions
inline constexpr float kNothing = -__builtin_inff();
/// Positions whose keys, and then values, meet all queries of a chunk together: at 128 dimensions of two bytes 16 KiB,
/// half an L1 cache.
inline constexpr std::size_t kSpan = 64;

/// What will be visited next: while a span of positions meets the queries, the next span is asked for, a line at a time
/// between the arithmetic, so that reading and multiplying go on at the same time and memory is visited in its order.
/// The hardware's own prefetching starts anew every 4 KiB, which 16 keys of 128 dimensions fill: alone it reaches half
/// the speed. Asking goes to L2, a span ahead: there are far fewer places for lines on their way to L1.
struct Ahead {
  const std::uint8_t* at;
  std::size_t share;  ///< of what is visited, in 65536ths: all tiles of queries together ask for a whole span
  /// The bytes of the present span from `offset` on are being visited. What is asked for need not exist.
  HK_INLINE void ask(std::size_t offset, std::size_t bytes) const {
    for (std::size_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + ((offset + line) * share >> 16), 0, 2);
  }
};

template <int N>
struct Count {
  static constexpr int kValue = N;
};

/// Calls body(Count<N>, first query) for tiles of kLargest queries, then for the rest in tiles of 4, 2 and 1. Eight are
/// two tiles of 4 rather than one of 6 and one of 2, for which as much is converted as for 6.
template <int kLargest, typename Body>
HK_INLINE void for_tiles(std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + kLargest <= n && (kLargest != 6 || n - i != 8); i += kLargest) body(Count<kLargest>{}, i);
  if constexpr (kLargest > 4) {
    for (; i + 4 <= n; i += 4) body(Count<4>{}, i);
  }
  if constexpr (kLargest > 2) {
    if (i + 2 <= n) {
      body(Count<2>{}, i);
      i += 2;
    }
  }
  for (; i < n; ++i) body(Count<1>{}, i);
}

/// The largest of 1, 2, 4 and 8 that is not above `most`, and at least 1.
constexpr int power_below(int most) { return most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1; }

/// Positions that some query of a tile sees.
struct Seen {
  std::size_t first, last;
  std::size_t group_begin() const { return first / kKeyGroup * kKeyGroup; }
  std::size_t group_end() const { return first >= last ? group_begin() : round_up(last, kKeyGroup); }
};
HK_INLINE Seen seen_by(const AttendPageArgs& args, std::size_t query, int n) {
  Seen seen{kKvPage, 0};
  for (std::size_t i = query; i < query + static_cast<std::size_t>(n); ++i) {
    if (args.first[i] >= args.last[i]) continue;
    if (args.first[i] < seen.first) seen.first = args.first[i];
    if (args.last[i] > seen.last) seen.last = args.last[i];
  }
  return seen;
}

/// e^x for x <= 0: 0 below -87, where results near the smallest normal number end. NaN stays.
HK_INLINE vf exp_negative(vf x) { return select(x == x, select(x < -87.0f, vf{}, exp_within(x)), x); }

/// Soft cap, position bias, mask, then exp(score - max) in place, over the positions that its tile has scores for.
HK_INLINE void exponentials(const AttendPageArgs& args, std::size_t query, Seen seen, float* scores) {
  const std::size_t first = args.first[query], last = args.last[query];
  const std::size_t from = seen.group_begin(), to = seen.group_end();
  args.max[query] = kNothing;
  args.sum[query] = 0;
  if (first >= last) {
    for (std::size_t j = from; j < to; j += W) store_f(scores + j, vf{});
    return;
  }
  if (args.softcap > 0) {
    for (std::size_t j = from; j < to; j += W)
      store_f(scores + j, tanh_f(load_f(scores + j) / args.softcap) * args.softcap);
  }
  if (args.slope != nullptr) {
    vi distance = set_i(args.distance[query] + static_cast<std::int32_t>(from));
    for (int lane = 0; lane < W; ++lane) distance[lane] += lane;
    for (std::size_t j = from; j < to; j += W, distance += W)
      store_f(scores + j, fma(set_f(args.slope[query]), to_float(distance), load_f(scores + j)));
  }
  for (std::size_t j = from; j < first; ++j) scores[j] = kNothing;
  for (std::size_t j = last; j < to; ++j) scores[j] = kNothing;
  vf largest = set_f(kNothing);
  for (std::size_t j = from; j < to; j += W) largest = max_f(load_f(scores + j), largest);
  const float max = fold_lanes(largest, max_f)[0];
  if (!(max > kNothing)) {  // all scores are -infinity, and weigh nothing, or NaN, which shows
    vf any{};
    for (std::size_t j = from; j < to; j += W) {
      const vf s = load_f(scores + j);
      const vf nan = select(s == s, vf{}, s);
      store_f(scores + j, nan);
      any += nan;
    }
    const float sum = fold_sum(any);
    if (!(sum == sum)) args.max[query] = 0;
    args.sum[query] = sum;
    return;
  }
  vf sum{};
  for (std::size_t j = from; j < to; j += W) {
    const vf e = exp_negative(load_f(scores + j) - max);
    store_f(scores + j, e);
    sum = sum + e;
  }
  args.max[query] = max;
  args.sum[query] = fold_sum(sum);
}

/// The positions of a span that some query of a tile sees, and whether they are the tile's first and last ones.
struct Part {
  std::size_t begin, end;
  bool first, last;
};

/// Calls visit(Count<N>, query, part, ahead) for each span of positions and each tile of queries that sees some of it.
/// A span has `span_bytes` from `base` on; `next` is what is visited behind the last one.
template <int kLargest, typename Visit>
HK_INLINE void for_spans(const AttendPageArgs& args, const void* base, std::size_t span_bytes, const void* next,
                         const Visit& visit) {
  const Seen all = seen_by(args, 0, static_cast<int>(args.n));
  std::size_t tiles = 0;
  for_tiles<kLargest>(args.n, [&](auto, std::size_t) HK_LAMBDA_INLINE { ++tiles; });
  for (std::size_t from = all.first / kSpan * kSpan; from < all.last; from += kSpan) {
    const auto* here = static_cast<const std::uint8_t*>(base) + from / kSpan * span_bytes;
    const auto* behind = from + kSpan < all.last ? here + span_bytes : static_cast<const std::uint8_t*>(next);
    std::size_t tiles_before = 0;
    for_tiles<kLargest>(args.n, [&](auto tile, std::size_t i) HK_LAMBDA_INLINE {
      const std::size_t begin = tiles_before++ * span_bytes / tiles;
      const Seen seen = seen_by(args, i, tile.kValue);
      Part part{seen.first, seen.last, true, true};
      if (part.begin < from) part.begin = from, part.first = false;
      if (part.end > from + kSpan) part.end = from + kSpan, part.last = false;
      if (part.begin >= part.end) return;
      // with nothing to ask for: the first line of the span, which is there
      const Ahead ahead = behind == nullptr ? Ahead{here, 0} : Ahead{behind + begin, 65536 / tiles};
      visit(tile, i, part, ahead);
    });
  }
}

/// Zeros as sums of queries that see nothing: no part may visit them.
HK_INLINE void clear_unseeing(const AttendPageArgs& args) {
  for (std::size_t i = 0; i < args.n; ++i) {
    if (args.first[i] < args.last[i]) continue;
    for_lanes(args.value_size,
              [&](std::size_t d, int count) HK_LAMBDA_INLINE { store_some(args.acc[i] + d, vf{}, count); });
  }
}

/// Scores of a chunk's queries over the page, then their exponentials. score(Count<N>, query, part, row, ahead) fills
/// the key groups of a part, for N rows of kKvPage.
template <int kLargest, typename Score>
HK_INLINE void weigh_positions(const AttendPageArgs& args, std::size_t span_bytes, float* scores, const Score& score) {
  for_spans<kLargest>(args, args.k, span_bytes, args.v,
                      [&](auto tile, std::size_t i, Part part, const Ahead& ahead)
                          HK_LAMBDA_INLINE { score(tile, i, part, scores + i * kKvPage, ahead); });
  for_tiles<kLargest>(args.n, [&](auto tile, std::size_t i) HK_LAMBDA_INLINE {
    const Seen seen = seen_by(args, i, tile.kValue);
    for (std::size_t query = i; query < i + tile.kValue; ++query)
      exponentials(args, query, seen, scores + query * kKvPage);
  });
}

}  // namespace
}  // namespace hk::kernels
