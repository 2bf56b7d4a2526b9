// Matrix kernels of the float formats for one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/panel.h"
#include "kernels/isa/unpack_float.h"

namespace hk::kernels {
namespace {

/// Columns whose sum begins anew: 32 KiB of unpacked weights at 16 lanes, less than L1. Column k of a chunk belongs to
/// chain k % kChains, and the sum of a chunk is that of its chains in order. So a row can be read as it lies, with a
/// chain in every lane, and chains are short enough that the rounding error of 4096 columns stays near that of 64.
inline constexpr int kFloatChunk = 256;
inline constexpr int kChains = W / kRowsAVector;
inline constexpr int kChainColumns = kFloatChunk / kChains;

/// Up to so many activations are streamed.
inline constexpr int kStreamedA = kStreamedRows;

struct FloatScratch {
  alignas(64) vf columns[kChains][kChainColumns][R];  ///< [k % kChains][k / kChains]
  PanelSums sums;
};

template <int A>
HK_NOINLINE void float_tile(FloatScratch& scratch, int columns, const MatmulArgs& args, std::size_t first_column,
                            std::size_t first, std::size_t i) {
  const RowDistances rows(args.activation_stride);
  const auto* x =
      static_cast<const std::uint8_t*>(args.activations) + (first + i) * args.activation_stride + first_column * 4;
  const auto* ahead = x + A * args.activation_stride;
  vf total[R][A] = {};
  for (int chain = 0; chain < kChains && chain < columns; ++chain) {
    const int length = (columns - chain + kChains - 1) / kChains;
    const std::uint8_t* values = x + 4 * chain;
    const vf* weights = scratch.columns[chain][0];
    vf part[R][A] = {};
    const auto add = [&](int k) HK_LAMBDA_INLINE {
      vf w[R];
      for (int r = 0; r < R; ++r) w[r] = weights[k * R + r];
      for (int a = 0; a < A; ++a) {
        const vf s = as_f(set_i(load32(rows.row(values, a) + 4 * kChains * k)));
        for (int r = 0; r < R; ++r) part[r][a] = fma(w[r], s, part[r][a]);
      }
    };
    // the next tile's activations, a few lines at a time
    for (int line = chain; line < kFloatChunk / 16; line += kChains) {
      for (int a = 0; a < A; ++a) __builtin_prefetch(rows.row(ahead, a) + 64 * line);
    }
    int k = 0;
    for (; k + 4 <= length; k += 4) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) add(j);
      advance(values, 4 * 4 * kChains);
      weights += 4 * R;
    }
    for (; k < length; ++k) {
      add(0);
      advance(values, 4 * kChains);
      weights += R;
    }
    for (int a = 0; a < A; ++a) {
      for (int r = 0; r < R; ++r) total[r][a] += part[r][a];
    }
  }
  vf acc[R][A];
  load_sums<A>(scratch.sums, i, first_column == 0, acc);
  for (int a = 0; a < A; ++a) {
    for (int r = 0; r < R; ++r) acc[r][a] += total[r][a];
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
    use(k, w, kWideColumns<F>);
  }
  for (; k + kUnitColumns <= count; k += kUnitColumns) {
    unpack_unit<F>(rows, (first + k) * F::kBytes, w, 1);
    use(k, w, kUnitColumns);
  }
  if (k < count) {
    unpack_tail<F>(rows, (first + k) * F::kBytes, count - k, w, 1);
    use(k, w, count - k);
  }
}

/// Rows that are read side by side: with fewer, sums would wait for each other; with more, they would not stay in
/// registers.
template <int A>
inline constexpr int kSideBySide = W == 16  ? 8
                                   : W == 4 ? 4
                                   : A == 1 ? 8
                                   : A == 2 ? 4
                                            : 2;
/// Chunks of these rows that are read before the next rows: 4 KiB of a row, short of filling L1 with their sums.
template <typename F, int kActivations>
inline constexpr int kStretch = (16 / F::kBytes < 16 / kActivations ? 16 / F::kBytes : 16 / kActivations);

/// kChains activations, for each row of a vector.
HK_INLINE vf load_activations(const void* p) {
#if defined(HK_ISA_AVX512)
  return (vf)_mm512_broadcast_f32x8(_mm256_loadu_ps(static_cast<const float*>(p)));
#else
  return load_f(p);
#endif
}

/// Chains of a chunk of neighbouring rows, as they lie in memory.
template <typename F, int A, int kVectors>
HK_INLINE void float_chains(const std::uint8_t* const* rows, Ahead& ahead, const std::uint8_t* x,
                            const RowDistances& distances, int count, vf (&part)[kVectors][A]) {
  constexpr int kOfLine = kLine / F::kBytes, kRows = kVectors * kRowsAVector;
  const auto multiply = [&](const vf* s, const std::uint8_t* const* from, int offset) HK_LAMBDA_INLINE {
    for (int v = 0; v < kVectors; ++v) {
      const vf w = F::load(from + v * kRowsAVector, offset);
      for (int a = 0; a < A; ++a) part[v][a] = fma(w, s[a], part[v][a]);
    }
  };
  const auto add = [&](int k) HK_LAMBDA_INLINE {
    vf s[A];
    for (int a = 0; a < A; ++a) s[a] = load_activations(distances.row(x, a) + 4 * k);
    multiply(s, rows, k * F::kBytes);
  };
  int k = 0;
  for (; k + kOfLine <= count; k += kOfLine) {
    ahead.part();
#pragma GCC unroll 8
    for (int j = 0; j < kOfLine; j += kChains) add(k + j);
  }
  for (; k + kChains <= count; k += kChains) add(k);
  if (k == count) return;
  // nothing behind a row may be read, of activations neither (what is there may be no number): zeros take part instead
  alignas(64) std::uint8_t copies[kRows][kChains * F::kBytes] = {};
  const std::uint8_t* pointers[kRows];
  for (int r = 0; r < kRows; ++r) {
    for (int byte = 0; byte < (count - k) * F::kBytes; ++byte) copies[r][byte] = rows[r][k * F::kBytes + byte];
    pointers[r] = copies[r];
  }
  alignas(64) float values[A][kChains] = {};
  vf s[A];
  for (int a = 0; a < A; ++a) {
    const std::uint8_t* from = distances.row(x, a) + 4 * k;
    for (int j = 0; j < count - k; ++j) __builtin_memcpy(&values[a][j], from + 4 * j, 4);
    s[a] = load_activations(values[a]);
  }
  multiply(s, pointers, 0);
}

/// Adds the chains of W rows to the rows' sum.
HK_INLINE void add_chains(const float (&chains)[W][kChains], vf& sum) {
  const std::uint8_t* rows[W];
  for (int r = 0; r < W; ++r) rows[r] = reinterpret_cast<const std::uint8_t*>(chains[r]);
  vi columns[kChains];
  for (int c = 0; c < kChains; c += 4) load_rows16(rows, 4 * c, columns + c);
  vf total{};
  for (int c = 0; c < kChains; ++c) total += as_f(columns[c]);
  sum += total;
}

/// A panel against kGroups * A activations at most: rows are read as they lie, every lane a chain.
template <typename F, int A, int kGroups>
HK_NOINLINE void float_stream(const Panel& panel, const MatmulArgs& args) {
  constexpr int kRows = kSideBySide<A>, kVectors = kRows / kRowsAVector, kChunks = kStretch<F, A * kGroups>;
  constexpr std::size_t kColumns = std::size_t{kChunks} * kFloatChunk, kOfLine = kLine / F::kBytes;
  const std::size_t second = args.n - A;  // groups may overlap
  const RowDistances distances(args.activation_stride);
  const auto* activations = static_cast<const std::uint8_t*>(args.activations);
  vf sums[kGroups][R][A] = {};
  alignas(64) float chains[kGroups][A][kChunks][W][kChains];
  Ahead ahead{};
  for (std::size_t first = 0; first < args.cols; first += kColumns) {
    const std::size_t stretch = args.cols - first < kColumns ? args.cols - first : kColumns;
    const int chunks = static_cast<int>((stretch + kFloatChunk - 1) / kFloatChunk);
#pragma GCC unroll 1
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 1
      for (int lane = 0; lane < W; lane += kRows) {
        // the next rows, behind the last of the panel their next stretch or the next panel
        const bool last = r * W + lane + kRows == kPanel, end = last && first + stretch == args.cols;
        const std::size_t from = !last ? first : end ? 0 : first + stretch;
        const std::size_t columns = args.cols - from < kColumns ? args.cols - from : kColumns;
        const std::size_t row = last && !end ? 0 : static_cast<std::size_t>(r * W + lane + kRows);
        ahead.begin(panel.rows[0] + row * args.weight_stride + from * F::kBytes, columns * F::kBytes,
                    args.weight_stride, kRows, kGroups * ((stretch + kOfLine - 1) / kOfLine));
        for (int chunk = 0; chunk < chunks; ++chunk) {
          const std::size_t at = first + static_cast<std::size_t>(chunk) * kFloatChunk;
          const int count = args.cols - at < kFloatChunk ? static_cast<int>(args.cols - at) : kFloatChunk;
          const std::uint8_t* rows[kRows];
          for (int k = 0; k < kRows; ++k) rows[k] = panel.rows[r * W + lane + k] + at * F::kBytes;
          for (int group = 0; group < kGroups; ++group) {
            vf part[kVectors][A] = {};
            const std::uint8_t* x = activations + (group == 0 ? 0 : second) * args.activation_stride + 4 * at;
            float_chains<F, A, kVectors>(rows, ahead, x, distances, count, part);
            for (int v = 0; v < kVectors; ++v) {
              for (int a = 0; a < A; ++a) store_f(chains[group][a][chunk][lane + v * kRowsAVector], part[v][a]);
            }
          }
        }
      }
      for (int group = 0; group < kGroups; ++group) {
        for (int a = 0; a < A; ++a) {
          for (int chunk = 0; chunk < chunks; ++chunk) add_chains(chains[group][a][chunk], sums[group][r][a]);
        }
      }
    }
  }
  store_groups<A, kGroups>(panel, sums, second);
}

/// A panel against many activations.
template <typename F>
HK_NOINLINE void float_tiles(const Panel& panel, const MatmulArgs& args, std::size_t first_activation, std::size_t n,
                             FloatScratch& scratch) {
  constexpr int kParts = R * kFloatChunk / kWideColumns<F>;
  const std::size_t units = (args.cols + kFloatChunk - 1) / kFloatChunk;
  WindowAhead<F::kBytes * kFloatChunk> ahead(panel, args, args.cols * F::kBytes);
  for (std::size_t unit = 0; unit < units; ++unit) {
    const std::size_t first = unit * kFloatChunk;
    ahead.template unit<kParts>(unit);
    const int count = args.cols - first < kFloatChunk ? static_cast<int>(args.cols - first) : kFloatChunk;
#pragma GCC unroll 1
    for (int r = 0; r < R; ++r) {
      for_columns<F>(panel.rows + r * W, first, count, [&](int k, const vf* w, int columns) HK_LAMBDA_INLINE {
        ahead.part();
        for (int j = 0; j < columns; ++j) scratch.columns[(k + j) % kChains][(k + j) / kChains][r] = w[j];
      });
    }
    for_tiles<kMaxSingleA, kStreamedA>(n, [&]<int A>(std::size_t i) HK_LAMBDA_INLINE {
      if (unit + 1 == units) ask_for_results<A>(panel, first_activation + i);
      float_tile<A>(scratch, count, args, first, first_activation, i);
    });
  }
  if (units == 0) return store_zeros(panel, first_activation, n);
  for (std::size_t i = 0; i < n; ++i) store_results(panel, first_activation + i, scratch.sums.of[i]);
}

template <typename F>
void matmul_float(const MatmulArgs& args) {
  for_panels<kStreamedA, FloatScratch>(
      args, [&]<int A, int kGroups>(const Panel& panel) HK_LAMBDA_INLINE { float_stream<F, A, kGroups>(panel, args); },
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
