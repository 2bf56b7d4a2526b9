// The matrix kernels, generic over unpackers: a panel of weight rows is unpacked once into L1 and meets every
// activation row.
//
// Part of the level sources (see vec.h). One code path serves one activation row and many, so the order of every sum is
// the same in both (the promise in kernels/kernels.h):
//   Block32: over blocks in order, acc = fma(float(integer dot), weight scale * activation scale, acc)
//   Super:   integers within 256 elements, then the same with the super-block's scale; minima follow as a second fma
//   Float:   fma over the columns of a chunk from zero, then acc += chunk
#pragma once

#include "kernels/activation.h"
#include "kernels/isa/unpack.h"
#include "kernels/kernels.h"

namespace hk::kernels {
namespace {

// Panel and tile sizes. Accumulators for R vectors of rows by A activations stay in registers: 32 registers hold the
// 2 x 6 integer and 2 x 6 float sums of a Block32 tile plus two weight vectors; 16 registers hold 2 x 3 integer sums.
#if defined(HK_ISA_AVX512)
inline constexpr int R = 2;
inline constexpr int kMaxA = 6;
#elif defined(HK_ISA_AVX2)
inline constexpr int R = 2;
inline constexpr int kMaxA = 3;
#else
inline constexpr int R = 2;
inline constexpr int kMaxA = 4;
#endif
inline constexpr int kPanel = R * W;

/// Bytes ahead of the current block that are fetched for every row while a single activation streams through the
/// weights. 512 covers memory latency at one core's share of the bandwidth (measured with bench/matmul_bench).
inline constexpr std::size_t kPrefetch = 512;

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

HK_INLINE void prefetch_rows(const Panel& panel, std::size_t offset, int bytes) {
  for (int r = 0; r < kPanel; ++r) {
    for (int b = 0; b < bytes; b += 64) __builtin_prefetch(panel.rows[r] + offset + kPrefetch + b);
  }
}

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

/// Calls tile.template operator()<A>(i) for runs of A activations: full tiles first, then the remainder.
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
template <typename Tile>
HK_INLINE void for_tiles(std::size_t n, const Tile& tile) {
  std::size_t i = 0;
  for (; i + kMaxA <= n; i += kMaxA) tile.template operator()<kMaxA>(i);
  remainder<kMaxA - 1>(i, n - i, tile);
}

template <bool kWide>
HK_INLINE vi dot(vi acc, vi w, vi s) {
  if constexpr (kWide) {
    return dot_wide(acc, w, s);
  } else {
    return dot_u8s8(acc, w, s);
  }
}

// --- Block32 ---------------------------------------------------------------------------------------------------------

inline constexpr int kChunkBlocks = 8;  // 256 columns: 8 KiB of unpacked weights at 16 lanes, a sixth of L1

template <typename F>
struct BlockScratch {
  alignas(64) vi steps[kChunkBlocks][8][R];
  vf scale[kChunkBlocks][R];
  vf min[F::kHasMin ? kChunkBlocks : 1][R];
};

template <typename F, int A>
HK_INLINE void block_tile(const BlockScratch<F>& scratch, int blocks, const Panel& panel, const MatmulArgs& args,
                          const ActivationLayout& layout, std::size_t first_block, std::size_t i) {
  const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
  const std::uint8_t* codes[A];
  for (int a = 0; a < A; ++a) codes[a] = record + a * args.activation_stride + first_block * 32;
  const std::size_t scales = layout.scales + (first_block * 4) - first_block * 32;
  const std::size_t sums = layout.sums + (first_block * 4) - first_block * 32;
  vf acc[R][A];
  load_sums<A>(panel, i, first_block == 0, acc);
  for (int b = 0; b < blocks; ++b) {
    vi total[R][A];
    for (int a = 0; a < A; ++a) {
      vi start{};
      if constexpr (F::kBias != 0) start = set_i(-F::kBias * load32(codes[a] + sums + 4 * b));
      for (int r = 0; r < R; ++r) total[r][a] = start;
    }
#pragma GCC unroll 8
    for (int u = 0; u < 8; ++u) {
      vi w[R];
      for (int r = 0; r < R; ++r) w[r] = scratch.steps[b][u][r];
      for (int a = 0; a < A; ++a) {
        const vi s = set_i(load32(codes[a] + 32 * b + 4 * u));
        for (int r = 0; r < R; ++r) total[r][a] = dot<F::kWide>(total[r][a], w[r], s);
      }
    }
    for (int a = 0; a < A; ++a) {
      float scale;
      __builtin_memcpy(&scale, codes[a] + scales + 4 * b, 4);
      const vf activation_scale = set_f(scale);
      for (int r = 0; r < R; ++r) {
        acc[r][a] = fma(to_float(total[r][a]), scratch.scale[b][r] * activation_scale, acc[r][a]);
      }
      if constexpr (F::kHasMin) {
        const vf sum = set_f(scale * static_cast<float>(load32(codes[a] + sums + 4 * b)));
        for (int r = 0; r < R; ++r) acc[r][a] = fma(scratch.min[b][r], sum, acc[r][a]);
      }
    }
  }
  store_sums<A>(panel, i, acc);
}

template <typename F>
void matmul_block(const MatmulArgs& args) {
  const ActivationLayout layout = activation_layout(ActivationFormat::kQ8x32, args.cols);
  const std::size_t blocks = args.cols / 32;
  BlockScratch<F> scratch;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
    for (std::size_t first = 0; first < blocks; first += kChunkBlocks) {
      const int count = blocks - first < kChunkBlocks ? static_cast<int>(blocks - first) : kChunkBlocks;
      prefetch_rows(panel, first * F::kBytes, F::kBytes * kChunkBlocks);
      for (int b = 0; b < count; ++b) {
        for (int r = 0; r < R; ++r) {
          vi steps[8];
          F::unpack(panel.rows + r * W, (first + b) * F::kBytes, steps, &scratch.scale[b][r],
                    F::kHasMin ? &scratch.min[b][r] : nullptr);
          for (int u = 0; u < 8; ++u) scratch.steps[b][u][r] = steps[u];
        }
      }
      for_tiles(args.n, [&]<int A>(std::size_t i)
                            HK_LAMBDA_INLINE { block_tile<F, A>(scratch, count, panel, args, layout, first, i); });
    }
  }
}

// --- Super -----------------------------------------------------------------------------------------------------------

template <typename F>
struct SuperScratch {
  static constexpr int kGroups = 256 / F::kGroup;
  alignas(64) vi steps[64][R];
  vi scales[R][kGroups];
  vi mins[R][F::kHasMin ? kGroups / 2 : 1];
  vf d[R], dmin[R];
};

template <typename F, int A>
HK_INLINE void super_tile(const SuperScratch<F>& scratch, const Panel& panel, const MatmulArgs& args,
                          const ActivationLayout& layout, std::size_t block, std::size_t i) {
  constexpr int kGroups = SuperScratch<F>::kGroups;
  constexpr int kSteps = F::kGroup / 4;
  constexpr int kSumsOffset = F::kGroup == 32 ? 32 : 0;  // sums of 32 follow the sixteen sums of 16
  const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
  const std::uint8_t* codes[A];
  for (int a = 0; a < A; ++a) codes[a] = record + a * args.activation_stride + block * 256;
  const std::size_t sums = layout.sums + block * kSuperSums * 2 - block * 256 + kSumsOffset;
  const std::size_t scales = layout.scales + block * 4 - block * 256;

  vi total[R][A] = {};
#pragma GCC unroll 16
  for (int g = 0; g < kGroups; ++g) {
    vi part[R][A];
    for (int a = 0; a < A; ++a) {
      vi start{};
      if constexpr (F::kBias != 0) {
        start = set_i(-F::kBias * static_cast<std::int16_t>(load16(codes[a] + sums + 2 * g)));
      }
      for (int r = 0; r < R; ++r) part[r][a] = start;
    }
#pragma GCC unroll 8
    for (int u = 0; u < kSteps; ++u) {
      vi w[R];
      for (int r = 0; r < R; ++r) w[r] = scratch.steps[g * kSteps + u][r];
      for (int a = 0; a < A; ++a) {
        const vi s = set_i(load32(codes[a] + F::kGroup * g + 4 * u));
        for (int r = 0; r < R; ++r) part[r][a] = dot<F::kWide>(part[r][a], w[r], s);
      }
    }
    for (int a = 0; a < A; ++a) {
      for (int r = 0; r < R; ++r) total[r][a] += part[r][a] * scratch.scales[r][g];
    }
  }
  vf acc[R][A];
  load_sums<A>(panel, i, block == 0, acc);
  for (int a = 0; a < A; ++a) {
    float scale;
    __builtin_memcpy(&scale, codes[a] + scales, 4);
    const vf activation_scale = set_f(scale);
    for (int r = 0; r < R; ++r) acc[r][a] = fma(to_float(total[r][a]), scratch.d[r] * activation_scale, acc[r][a]);
    if constexpr (F::kHasMin) {
      for (int r = 0; r < R; ++r) {
        vi min{};
        for (int j = 0; j < kGroups / 2; ++j)
          min = dot_s16(min, scratch.mins[r][j], set_i(load32(codes[a] + sums + 4 * j)));
        acc[r][a] = fma(to_float(min), scratch.dmin[r] * activation_scale, acc[r][a]);
      }
    }
  }
  store_sums<A>(panel, i, acc);
}

template <typename F>
void matmul_super(const MatmulArgs& args) {
  const ActivationLayout layout = activation_layout(ActivationFormat::kQ8x256, args.cols);
  const std::size_t blocks = args.cols / 256;
  SuperScratch<F> scratch;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
    for (std::size_t block = 0; block < blocks; ++block) {
      prefetch_rows(panel, block * F::kBytes, F::kBytes);
      for (int r = 0; r < R; ++r) {
        F::unpack(panel.rows + r * W, block * F::kBytes, &scratch.steps[0][r], R, scratch.scales[r], scratch.mins[r],
                  &scratch.d[r], &scratch.dmin[r]);
      }
      for_tiles(args.n, [&]<int A>(std::size_t i)
                            HK_LAMBDA_INLINE { super_tile<F, A>(scratch, panel, args, layout, block, i); });
    }
  }
}

// --- Float -----------------------------------------------------------------------------------------------------------

/// Columns a partial sum covers: 16 KiB of unpacked weights at 16 lanes, a third of L1, and short enough chains that
/// the rounding error of 4096 columns stays near that of 128.
inline constexpr int kFloatChunk = 128;

struct FloatScratch {
  alignas(64) vf columns[kFloatChunk][R];
};

template <int A>
HK_INLINE void float_tile(const FloatScratch& scratch, int columns, const Panel& panel, const MatmulArgs& args,
                          std::size_t first_column, std::size_t i) {
  const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
  const std::uint8_t* x[A];
  for (int a = 0; a < A; ++a) x[a] = record + a * args.activation_stride + first_column * 4;
  vf part[R][A] = {};
#pragma GCC unroll 4
  for (int k = 0; k < columns; ++k) {
    vf w[R];
    for (int r = 0; r < R; ++r) w[r] = scratch.columns[k][r];
    for (int a = 0; a < A; ++a) {
      float value;
      __builtin_memcpy(&value, x[a] + 4 * k, 4);
      const vf s = set_f(value);
      for (int r = 0; r < R; ++r) part[r][a] = fma(w[r], s, part[r][a]);
    }
  }
  vf acc[R][A];
  load_sums<A>(panel, i, first_column == 0, acc);
  for (int a = 0; a < A; ++a) {
    for (int r = 0; r < R; ++r) acc[r][a] += part[r][a];
  }
  store_sums<A>(panel, i, acc);
}

template <typename F>
void matmul_float(const MatmulArgs& args) {
  FloatScratch scratch;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
    for (std::size_t first = 0; first < args.cols; first += kFloatChunk) {
      const int count = args.cols - first < kFloatChunk ? static_cast<int>(args.cols - first) : kFloatChunk;
      const std::size_t offset = first * F::kBytes;
      prefetch_rows(panel, offset, F::kBytes * kFloatChunk);
      const int whole = count / F::kColumns * F::kColumns;
      for (int r = 0; r < R; ++r) {
        for (int k = 0; k < whole; k += F::kColumns) {
          F::unpack(panel.rows + r * W, offset + static_cast<std::size_t>(k) * F::kBytes, &scratch.columns[k][r], R);
        }
        if (whole < count) {
          // the last columns do not fill 16 bytes: never read past a row, take a zero-padded copy
          alignas(16) std::uint8_t tail[W][16] = {};
          const std::uint8_t* rows[W];
          const std::size_t bytes = static_cast<std::size_t>(count - whole) * F::kBytes;
          for (int lane = 0; lane < W; ++lane) {
            const std::uint8_t* from = panel.rows[r * W + lane] + offset + static_cast<std::size_t>(whole) * F::kBytes;
            for (std::size_t byte = 0; byte < bytes; ++byte) tail[lane][byte] = from[byte];
            rows[lane] = tail[lane];
          }
          vf columns[F::kColumns];
          F::unpack(rows, 0, columns, 1);
          for (int k = whole; k < count; ++k) scratch.columns[k][r] = columns[k - whole];
        }
      }
      for_tiles(args.n,
                [&]<int A>(std::size_t i) HK_LAMBDA_INLINE { float_tile<A>(scratch, count, panel, args, first, i); });
    }
  }
}

/// Types without an integer kernel: blocks are decoded to floats by the exact scalar decoder, then treated as f32.
template <StorageType kType>
void matmul_decoded(const MatmulArgs& args) {
  const Format* format = find_format(kType);
  constexpr int kChunk = 256;  // a whole number of blocks of every format
  alignas(64) float decoded[W][kChunk];
  const std::uint8_t* rows[W];
  for (int lane = 0; lane < W; ++lane) rows[lane] = reinterpret_cast<const std::uint8_t*>(decoded[lane]);
  FloatScratch scratch;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
    for (std::size_t first = 0; first < args.cols; first += kFloatChunk) {
      const int count = args.cols - first < kFloatChunk ? static_cast<int>(args.cols - first) : kFloatChunk;
      const std::size_t begin = first / kChunk * kChunk;  // decode whole super-blocks, use half of them
      const std::size_t end = begin + kChunk < args.cols ? begin + kChunk : args.cols;
      for (int r = 0; r < R; ++r) {
        for (int lane = 0; lane < W; ++lane) {
          format->decode(panel.rows[r * W + lane] + begin / format->block_elements * format->block_bytes, decoded[lane],
                         end - begin);
        }
        for (int k = 0; k < count; k += 4) F32::unpack(rows, (first - begin + k) * 4, &scratch.columns[k][r], R);
      }
      for_tiles(args.n,
                [&]<int A>(std::size_t i) HK_LAMBDA_INLINE { float_tile<A>(scratch, count, panel, args, first, i); });
    }
  }
}

}  // namespace
}  // namespace hk::kernels
