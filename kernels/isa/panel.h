// The matrix kernels, generic over unpackers: a panel of weight rows is unpacked once into L1 and meets every
// activation row.
//
// Part of the level sources (see vec.h). One code path serves one activation row and many, so the order of every sum is
// the same in both (the promise in kernels/kernels.h):
//   Block32: over blocks in order, acc = fma(float(integer dot), weight scale * activation scale, acc)
//   Super:   integers within 256 elements, then the same with the super-block's scale; minima follow as a second fma
//   Float:   within a chunk of columns a few chains of fma, each from zero (matmul_float.cpp), then acc += their sum
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

/// Weights are asked for a window ahead of their use: so many bytes of each row of a panel. A panel's rows lie one
/// behind the other, so asking goes through memory in its order, page after page, where the hardware follows on its
/// own; and it goes to L2, where two windows of 32 rows (128 KiB) stay, because there are far fewer places for lines on
/// their way to L1. On a Zen 4 core that reads 28 GB/s, asking for each of 32 rows 256 bytes ahead into L1 came to 8.5
/// GB/s, windows of 1 KiB to 24, of 2 KiB to 28, of 4 KiB to 30.
inline constexpr std::size_t kWindow = 2048;
inline constexpr std::size_t kLine = 64;

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

/// Asks for a rectangle of memory, some lines at a time between the arithmetic: as one burst the requests would fill
/// the miss buffers and stall the loads behind them.
class Ahead {
 public:
  /// `bytes` of each of `rows` rows from `first` on, `stride` apart, in `parts` parts. What is asked for need not
  /// exist.
  HK_INLINE void begin(const std::uint8_t* first, std::size_t bytes, std::size_t stride, std::size_t rows,
                       std::size_t parts) {
    at_ = first;
    end_ = first + bytes;
    bytes_ = bytes;
    stride_ = stride;
    // whole lines, though that may be some too many: a count that changes from part to part cost 3 to 10 %
    lines_ = static_cast<int>(((bytes + kLine - 1) / kLine * rows + parts - 1) / parts);
  }
  /// The next of the parts.
  HK_INLINE void part() {
    for (int i = 0; i < lines_; ++i) {
      __builtin_prefetch(at_, 0, 2);
      at_ += kLine;
      const bool over = at_ >= end_;  // no branch: rows end at any time
      at_ = over ? end_ - bytes_ + stride_ : at_;
      end_ = over ? end_ + stride_ : end_;
    }
  }

 private:
  const std::uint8_t *at_, *end_;
  std::size_t bytes_, stride_;
  int lines_;
};

/// Asks for the window that follows the one a panel is at; behind the panel's last one comes the next panel's first.
/// kBytes: of a row's unit (256 columns).
template <int kBytes>
class WindowAhead {
 public:
  /// `row_bytes`: of all units, the last of which may be shorter.
  HK_INLINE WindowAhead(const Panel& panel, const MatmulArgs& args, std::size_t row_bytes)
      : first_(panel.rows[0]),
        stride_(args.weight_stride),
        row_bytes_(row_bytes),
        units_((row_bytes_ + kBytes - 1) / kBytes),
        windows_((row_bytes_ + kWindow - 1) / kWindow) {}
  /// The unit that is being worked on, in order, in kParts parts (a shorter one in fewer).
  template <int kParts>
  HK_INLINE void unit(std::size_t index) {
    if (index != next_) return;
    // of equal length, so that a short one need not ask for a long one
    const auto end = [&](std::size_t window) { return units_ * (window + 1) / windows_; };
    const auto bytes = [&](std::size_t from, std::size_t to) {
      return (to == units_ ? row_bytes_ : to * kBytes) - from * kBytes;
    };
    const bool last = window_ + 1 == windows_;
    next_ = end(window_++);
    const std::size_t here = bytes(index, next_) * kParts / kBytes;
    ahead_.begin(last ? first_ + kPanel * stride_ : first_ + next_ * kBytes,
                 last ? bytes(0, end(0)) : bytes(next_, end(window_)), stride_, kPanel, here == 0 ? 1 : here);
  }
  HK_INLINE void part() { ahead_.part(); }

 private:
  const std::uint8_t* first_;
  std::size_t stride_, row_bytes_, units_, windows_, window_ = 0, next_ = 0;
  Ahead ahead_{};
};

/// The first window of a call, which nobody has asked for.
HK_INLINE void ask_for_first_window(const MatmulArgs& args) {
  const std::size_t rows = args.rows < static_cast<std::size_t>(kPanel) ? args.rows : kPanel;
  const std::size_t bytes = args.weight_stride < kWindow ? args.weight_stride : kWindow;
  const auto* row = static_cast<const std::uint8_t*>(args.weights);
  for (std::size_t r = 0; r < rows; ++r, row += args.weight_stride) {
    for (std::size_t byte = 0; byte < bytes; byte += kLine) __builtin_prefetch(row + byte, 0, 2);
  }
}

/// Activations that a panel meets before the next panel is unpacked. Their running sums lie here between chunks and go
/// to the output once: output rows are often a multiple of 4 KiB apart and share a few sets of every cache. 64 KiB at
/// 16 lanes; with 256, unpacking twice as often costs 2 % at 512.
inline constexpr std::size_t kBatch = 512;
/// Batches are shorter where so many activations would not stay in L2 from panel to panel: read from a last-level cache
/// that others use too, 512 f32 rows of 4096 took 1.25 times as long as in four batches. Below kLeastBatch, unpacking
/// would take longer than that.
inline constexpr std::size_t kBatchBytes = std::size_t{5} << 18, kLeastBatch = 96;
struct PanelSums {
  alignas(64) vf of[kBatch][R];
};

template <int A>
HK_INLINE void load_sums(const PanelSums& sums, std::size_t i, bool first, vf (&acc)[R][A]) {
  for (int a = 0; a < A; ++a) {
    for (int r = 0; r < R; ++r) acc[r][a] = first ? vf{} : sums.of[i + a][r];
  }
}
template <int A>
HK_INLINE void store_sums(const vf (&acc)[R][A], PanelSums& sums, std::size_t i) {
  for (int a = 0; a < A; ++a) {
    for (int r = 0; r < R; ++r) sums.of[i + a][r] = acc[r][a];
  }
}

/// Results of activation row i.
HK_INLINE void store_results(const Panel& panel, std::size_t i, const vf* sums) {
  float* out = panel.out + i * panel.out_stride;
  for (int r = 0; r < R; ++r) {
    const int left = panel.count - r * W;
    if (left >= W) {
      store_f(out + r * W, sums[r]);
    } else if (left > 0) {
      store_first(out + r * W, sums[r], left);
    }
  }
}

/// Asks for the memory of the results of A activation rows from i on, while there is still something to compute: each
/// row's lie elsewhere, and what is written so far apart waits for every line.
template <int A>
HK_INLINE void ask_for_results(const Panel& panel, std::size_t i) {
  const float* out = panel.out + i * panel.out_stride;
  for (int a = 0; a < A; ++a, out += panel.out_stride) {
    for (int lane = 0; lane < R * W; lane += 16) __builtin_prefetch(out + lane, 1, 2);
  }
}

/// Results of a stream of kGroups groups of A activations, the second of which begins with row `second`.
template <int A, int kGroups>
HK_INLINE void store_groups(const Panel& panel, const vf (&sums)[kGroups][R][A], std::size_t second) {
  for (int group = 0; group < kGroups; ++group) {
    for (int a = 0; a < A; ++a) {
      vf results[R];
      for (int r = 0; r < R; ++r) results[r] = sums[group][r][a];
      store_results(panel, group == 0 ? a : second + a, results);
    }
  }
}
/// What a row of no columns comes to.
HK_INLINE void store_zeros(const Panel& panel, std::size_t first, std::size_t n) {
  const vf zeros[R] = {};
  for (std::size_t i = first; i < first + n; ++i) store_results(panel, i, zeros);
}

/// Cuts n into runs as equal as can be of at most kMost: calls run(first, count).
template <typename Run>
HK_INLINE void for_equal_runs(std::size_t n, std::size_t most, const Run& run) {
  const std::size_t runs = (n + most - 1) / most;
  for (std::size_t k = 0, first = 0; k < runs; ++k) {
    const std::size_t count = n / runs + (k < n % runs ? 1 : 0);
    run(first, count);
    first += count;
  }
}
/// Shortest run that for_equal_runs() makes of more than kStreamed.
template <int kMost, int kStreamed>
constexpr int shortest_tile() {
  int shortest = kMost;
  // from kMost * kMost on, runs are at most one shorter than kMost, and kMost lengths in a row show it
  for (int n = kStreamed + 1; n <= kStreamed + kMost * kMost; ++n) {
    const int count = n / ((n + kMost - 1) / kMost);
    shortest = count < shortest ? count : shortest;
  }
  return shortest;
}
template <int A, int kLeast, typename Tile>
HK_INLINE void tile_of(std::size_t count, std::size_t first, const Tile& tile) {
  if constexpr (A >= kLeast) {
    if (count == static_cast<std::size_t>(A)) {
      tile.template operator()<A>(first);
    } else {
      tile_of<A - 1, kLeast>(count, first, tile);
    }
  }
}
/// Calls tile.template operator()<A>(first) for tiles that cover n > kStreamed activations.
template <int kMost, int kStreamed, typename Tile>
HK_INLINE void for_tiles(std::size_t n, const Tile& tile) {
  for_equal_runs(n, kMost, [&](std::size_t first, std::size_t count) HK_LAMBDA_INLINE {
    tile_of<kMost, shortest_tile<kMost, kStreamed>()>(count, first, tile);
  });
}

/// All panels of a call. Up to kStreamed activations: stream.template operator()<A, kGroups>(panel) takes all of them,
/// in kGroups groups of A, and weights go from memory through registers into the sums. More than that:
/// tiles(panel, first, n, scratch) for each batch.
template <int kStreamed, typename Scratch, typename Stream, typename Tiles>
HK_INLINE void for_panels(const MatmulArgs& args, const Stream& stream, const Tiles& tiles) {
  const auto streams = [&]<int A, int kGroups>() HK_LAMBDA_INLINE {
    for (std::size_t row = 0; row < args.rows; row += kPanel)
      stream.template operator()<A, kGroups>(make_panel(args, row));
  };
  if (args.n == 0) return;
  ask_for_first_window(args);
  if (args.n == 1) return streams.template operator()<1, 1>();
  if constexpr (kStreamed >= 4) {
    if (args.n == 2) return streams.template operator()<2, 1>();
    if (args.n == 3) return streams.template operator()<3, 1>();
    if (args.n == 4) return streams.template operator()<4, 1>();
  }
  if constexpr (kStreamed >= 8) {
    if (args.n <= 6) return streams.template operator()<3, 2>();
    if (args.n <= 8) return streams.template operator()<4, 2>();
  }
  Scratch scratch;
  const std::size_t fitting = kBatchBytes / (args.activation_stride + 1);  // a row of no columns takes nothing
  const std::size_t most = fitting > kBatch ? kBatch : fitting < kLeastBatch ? kLeastBatch : fitting;
  for_equal_runs(args.n, most, [&](std::size_t first, std::size_t n) HK_LAMBDA_INLINE {
    for (std::size_t row = 0; row < args.rows; row += kPanel) tiles(make_panel(args, row), first, n, scratch);
  });
}

/// Where A neighbouring activation rows lie, seen from the first one. Six rows need three registers besides a pointer
/// into the first: left to itself, the compiler keeps a pointer a row and field, and spills them.
class RowDistances {
 public:
  HK_INLINE explicit RowDistances(std::size_t stride) : one_(stride), three_(3 * stride), five_(5 * stride) {
    asm("" : "+r"(one_), "+r"(three_), "+r"(five_));
  }
  HK_INLINE const std::uint8_t* row(const std::uint8_t* first, int a) const {
    return first + (a == 3 ? three_ : a == 5 ? five_ : static_cast<std::size_t>(a) * one_);
  }

 private:
  std::size_t one_, three_, five_;
};
/// Moves a pointer on and hides how: the compiler would derive one running pointer for every use of it.
HK_INLINE void advance(const std::uint8_t*& p, std::ptrdiff_t bytes) {
  p += bytes;
  asm("" : "+r"(p));
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
