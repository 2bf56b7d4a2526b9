// Matrix kernels of the float formats for one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/panel.h"
#include "kernels/isa/unpack_float.h"

namespace hk::kernels {
namespace {

/// Columns a pair of partial sums covers: 16 KiB of unpacked weights at 16 lanes, a third of L1, and short enough
/// chains that the rounding error of 4096 columns stays near that of 64.
inline constexpr int kFloatChunk = 128;

struct FloatScratch {
  alignas(64) vf columns[kFloatChunk][R];
  PanelSums sums;
};

template <int A>
HK_NOINLINE void float_tile(FloatScratch& scratch, int columns, const MatmulArgs& args, std::size_t first_column,
                            std::size_t first, std::size_t i) {
  const RowDistances rows(args.activation_stride);
  const auto* x =
      static_cast<const std::uint8_t*>(args.activations) + (first + i) * args.activation_stride + first_column * 4;
  const auto* ahead = x + A * args.activation_stride;
  // two short chains a sum, one after the other: the registers hold the sums of one
  const auto half_of_columns = [&](int first_half, vf(&part)[R][A]) HK_LAMBDA_INLINE {
    const std::uint8_t* values = x + 4 * first_half;
    const vf* weights = scratch.columns[first_half];
    const auto add = [&](int k) HK_LAMBDA_INLINE {
      vf w[R];
      for (int r = 0; r < R; ++r) w[r] = weights[k * R + r];
      for (int a = 0; a < A; ++a) {
        const vf s = as_f(set_i(load32(rows.row(values, a) + 4 * k)));
        for (int r = 0; r < R; ++r) part[r][a] = fma(w[r], s, part[r][a]);
      }
    };
    int k = first_half;
    for (; k + 8 <= columns; k += 8) {
      // the next tile's activations, a few lines at a time: every second row in each half
      if (k % 16 < 8) {
        for (int a = first_half; a < A; a += 2) __builtin_prefetch(rows.row(ahead, a) + 4 * k);
      }
#pragma GCC unroll 4
      for (int j = 0; j < 8; j += 2) add(j);
      advance(values, 32);
      weights += 8 * R;
    }
    for (; k < columns; k += 2) {
      add(0);
      advance(values, 8);
      weights += 2 * R;
    }
  };
  vf even[R][A] = {}, odd[R][A] = {};
  half_of_columns(0, even);
  half_of_columns(1, odd);
  vf acc[R][A];
  load_sums<A>(scratch.sums, i, first_column == 0, acc);
  for (int a = 0; a < A; ++a) {
    for (int r = 0; r < R; ++r) acc[r][a] += even[r][a] + odd[r][a];
  }
  store_sums<A>(acc, scratch.sums, i);
}

/// The last columns of a row do not fill a unit: never read past a row, take a zero-padded copy.
template <typename F>
HK_INLINE void unpack_tail(const std::uint8_t* const* rows, std::size_t offset, int count, vf* columns, int stride) {
  alignas(16) std::uint8_t copies[W][16] = {};
  const std::uint8_t* pointers[W];
  for (int lane = 0; lane < W; ++lane) {
    for (int byte = 0; byte < count * F::kBytes; ++byte) copies[lane][byte] = rows[lane][offset + byte];
    pointers[lane] = copies[lane];
  }
  vf unit[16 / F::kBytes];
  unpack_unit<F>(pointers, 0, unit, 1);
  for (int k = 0; k < count; ++k) columns[k * stride] = unit[k];
}

/// All columns of a chunk of W rows in order: use(k, columns, count) for runs of at most kWideColumns<F>.
template <typename F>
inline constexpr int kWideColumns = 4 * W / F::kBytes;
template <typename F, typename Use>
HK_INLINE void for_columns(const std::uint8_t* const* rows, std::size_t first, int count, const Use& use) {
  constexpr int kUnitColumns = 16 / F::kBytes;
  vf w[kWideColumns<F>];
  int k = 0;
  for (; k + kWideColumns<F> <= count; k += kWideColumns<F>) {
    unpack_wide<F>(rows, (first + k) * F::kBytes, w, 1);
    use.template operator()<kWideColumns<F>>(k, w, kWideColumns<F>);
  }
  for (; k + kUnitColumns <= count; k += kUnitColumns) {
    unpack_unit<F>(rows, (first + k) * F::kBytes, w, 1);
    use.template operator()<kUnitColumns>(k, w, kUnitColumns);
  }
  if (k < count) {
    unpack_tail<F>(rows, (first + k) * F::kBytes, count - k, w, 1);
    use.template operator()<0>(k, w, count - k);
  }
}

/// A panel against one activation: columns go from memory through registers into the sums.
template <typename F>
HK_NOINLINE void float_stream(const Panel& panel, const MatmulArgs& args) {
  const std::size_t units = (args.cols + kFloatChunk - 1) / kFloatChunk;
  vf sums[1][R][1] = {};
  for (std::size_t unit = 0; unit < units; ++unit) {
    const std::size_t first = unit * kFloatChunk;
    const Prefetch prefetch(panel, args, unit, units, F::kBytes * kFloatChunk);
    const int count = args.cols - first < kFloatChunk ? static_cast<int>(args.cols - first) : kFloatChunk;
    const auto* x = static_cast<const std::uint8_t*>(args.activations) + first * 4;
#pragma GCC unroll 1
    for (int r = 0; r < R; ++r) {
      vf part[2] = {};  // even and odd columns
      for_columns<F>(panel.rows + r * W, first, count,
                     [&]<int kCount>(int k, const vf* w, int columns) HK_LAMBDA_INLINE {
                       if (k * F::kBytes % 64 == 0) prefetch.line(r * W, k * F::kBytes);
                       const std::uint8_t* values = x + 4 * k;
                       const int end = kCount == 0 ? columns : kCount;
                       for (int j = 0; j < end; ++j)
                         part[j % 2] = fma(w[j], as_f(set_i(load32(values + 4 * j))), part[j % 2]);
                     });
      sums[0][r][0] += part[0] + part[1];
    }
  }
  store_groups<1, 1>(panel, sums, 0);
}

/// A panel against many activations.
template <typename F>
HK_NOINLINE void float_tiles(const Panel& panel, const MatmulArgs& args, std::size_t first_activation, std::size_t n,
                             FloatScratch& scratch) {
  constexpr int kParts = R * kFloatChunk / kWideColumns<F>;
  const std::size_t units = (args.cols + kFloatChunk - 1) / kFloatChunk;
  for (std::size_t unit = 0; unit < units; ++unit) {
    const std::size_t first = unit * kFloatChunk;
    const Prefetch prefetch(panel, args, unit, units, F::kBytes * kFloatChunk);
    const int count = args.cols - first < kFloatChunk ? static_cast<int>(args.cols - first) : kFloatChunk;
    int part = 0;
#pragma GCC unroll 1
    for (int r = 0; r < R; ++r) {
      for_columns<F>(panel.rows + r * W, first, count,
                     [&]<int kCount>(int k, const vf* w, int columns) HK_LAMBDA_INLINE {
                       if (part < kParts) prefetch.rows(part, kParts);
                       ++part;
                       for (int j = 0; j < columns; ++j) scratch.columns[k + j][r] = w[j];
                     });
    }
    for_tiles<kMaxSingleA, 1>(n, [&]<int A>(std::size_t i) HK_LAMBDA_INLINE {
      float_tile<A>(scratch, count, args, first, first_activation, i);
    });
  }
  if (units == 0) return store_zeros(panel, first_activation, n);
  for (std::size_t i = 0; i < n; ++i) store_results(panel, first_activation + i, scratch.sums.of[i]);
}

template <typename F>
void matmul_float(const MatmulArgs& args) {
  for_panels<1, FloatScratch>(
      args, [&]<int, int>(const Panel& panel) HK_LAMBDA_INLINE { float_stream<F>(panel, args); },
      [&](const Panel& panel, std::size_t first, std::size_t n, FloatScratch& scratch)
          HK_LAMBDA_INLINE { float_tiles<F>(panel, args, first, n, scratch); });
}

}  // namespace

namespace HK_LEVEL {

MatmulFn matmul_float_format(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return matmul_float<F32>;
    case StorageType::kF16:
      return matmul_float<F16>;
    case StorageType::kBF16:
      return matmul_float<BF16>;
    default:
      return nullptr;
  }
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
