// The matrix kernels, generic over unpackers: a panel of weight rows is unpacked once into L1 and meets every
// activation row.
//
// Part of the level sources (see vec.h). One code path serves one activation row and many, so the order of every sum is
// the same in both (the promise in kernels/kernels.h):
//   Block32: over blocks in order, acc = fma(float(integer dot), weight scale * activation scale, acc)
//   Super:   integers within 256 elements, then the same with the super-block's scale; minima follow as a second fma
//   Float:   fma over the even and over the odd columns of a chunk from zero, then acc += even + odd
#pragma once

#include "kernels/activation.h"
#include "kernels/isa/vec.h"
#include "kernels/kernels.h"

namespace hk::kernels {
namespace {

// Panel and tile sizes: R vectors of rows by at most kMaxA activations (kMaxSingleA where only one kind of sums is live
// at a time). The sums stay in registers: 32 registers hold the 2 x 6 integer and 2 x 6 float sums of a Block32 tile
// plus two weight vectors, 16 registers 2 x 3 of both, or 2 x 5 of one kind. More chains than that spill (on AVX-512, 8
// activations cost 3 to 6 %); fewer do not cover the latency of the dot product.
inline constexpr int R = 2;
#if defined(HK_ISA_AVX512)
inline constexpr int kMaxA = 6, kMaxSingleA = 6;
#elif defined(HK_ISA_AVX2)
inline constexpr int kMaxA = 3, kMaxSingleA = 5;
#else
inline constexpr int kMaxA = 4, kMaxSingleA = 4;
#endif
inline constexpr int kPanel = R * W;

/// How far ahead of the weights in use the next ones are fetched, in bytes of a row. A fetch must be in time for the
/// memory's latency, but every one occupies a miss buffer meanwhile: measured on 4096-column matrices beyond the
/// last-level cache, 256 reached twice the rate of 1024 and of none.
inline constexpr int kAhead = 256;

struct Panel {
  const std::uint8_t* rows[kPanel];  // row pointers; past the end the last row repeats and its results are dropped
  int count;                         // rows that exist
  float* out;                        // results of the panel's first row
  std::size_t out_stride;
};

HK_INLINE Panel make_panel(const MatmulArgs& args, std::size_t first) {
  Panel panel;
  const std::size_t left = args.rows - first;
  panel.count = left < static_cast<std::size_t>(kPanel) ? static_cast<int>(left) : kPanel;
  const auto* base = static_cast<const std::uint8_t*>(args.weights) + first * args.weight_stride;
  for (int r = 0; r < kPanel; ++r) {
    panel.rows[r] = base + static_cast<std::size_t>(r < panel.count ? r : panel.count - 1) * args.weight_stride;
  }
  panel.out = args.out + first;
  panel.out_stride = args.out_stride;
  return panel;
}

/// Fetches what all rows of a panel need kAhead bytes later, a few rows at a time between the arithmetic: as one burst
/// the fetches would fill the miss buffers and stall the loads behind them. Past the end of the rows come the next
/// panel's.
class Prefetch {
 public:
  /// The unit (256 columns of `bytes` a row, `index` of `units`) that is being worked on.
  HK_INLINE Prefetch(const Panel& panel, const MatmulArgs& args, std::size_t index, std::size_t units, int bytes)
      : panel_(panel), bytes_(bytes) {
    const std::size_t later = index + static_cast<std::size_t>((kAhead + bytes - 1) / bytes);
    delta_ = later < units ? later * bytes : kPanel * args.weight_stride + (later - units) * bytes;
  }
  /// Part `part` of `parts` of the rows.
  HK_INLINE void rows(int part, int parts) const {
    for (int r = kPanel * part / parts; r < kPanel * (part + 1) / parts; ++r) {
      for (int b = 0; b < bytes_; b += 64) __builtin_prefetch(panel_.rows[r] + delta_ + b);
    }
  }
  /// The line at byte `at` of the unit, of W rows from `first` on: for unpackers that take whole lines.
  HK_INLINE void line(int first, int at) const {
    for (int r = first; r < first + W; ++r) __builtin_prefetch(panel_.rows[r] + delta_ + at);
  }

 private:
  const Panel& panel_;
  std::size_t delta_;
  int bytes_;
};

/// Running sums of A activations between chunks live in the output itself.
template <int A>
HK_INLINE void load_sums(const Panel& panel, std::size_t i, bool first, vf (&acc)[R][A]) {
  for (int a = 0; a < A; ++a) {
    const float* out = panel.out + (i + a) * panel.out_stride;
    for (int r = 0; r < R; ++r) {
      const int left = panel.count - r * W;
      acc[r][a] = first || left <= 0 ? vf{} : left >= W ? load_f(out + r * W) : load_first(out + r * W, left);
    }
  }
}

template <int A>
HK_INLINE void store_sums(const Panel& panel, std::size_t i, const vf (&acc)[R][A]) {
  for (int a = 0; a < A; ++a) {
    float* out = panel.out + (i + a) * panel.out_stride;
    for (int r = 0; r < R; ++r) {
      const int left = panel.count - r * W;
      if (left >= W) {
        store_f(out + r * W, acc[r][a]);
      } else if (left > 0) {
        store_first(out + r * W, acc[r][a], left);
      }
    }
  }
}

/// Calls tile.template operator()<A>(i) for runs of A <= kMax activations: full tiles first, then the remainder.
template <int A, typename Tile>
HK_INLINE void remainder(std::size_t i, std::size_t left, const Tile& tile) {
  if constexpr (A > 0) {
    if (left == static_cast<std::size_t>(A)) {
      tile.template operator()<A>(i);
    } else {
      remainder<A - 1>(i, left, tile);
    }
  }
}
template <int kMax, typename Tile>
HK_INLINE void for_tiles(std::size_t n, const Tile& tile) {
  std::size_t i = 0;
  for (; i + kMax <= n; i += kMax) tile.template operator()<kMax>(i);
  remainder<kMax - 1>(i, n - i, tile);
}

template <bool kWide>
HK_INLINE vi dot(vi acc, vi w, vi s) {
  if constexpr (kWide) {
    return dot_wide(acc, w, s);
  } else {
    return dot_u8s8(acc, w, s);
  }
}

}  // namespace
}  // namespace hk::kernels
