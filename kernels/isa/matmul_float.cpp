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
};

template <int A>
HK_INLINE void float_tile(const FloatScratch& scratch, int columns, const Panel& panel, const MatmulArgs& args,
                          std::size_t first_column, std::size_t i) {
  const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
  const std::uint8_t* x[A];
  for (int a = 0; a < A; ++a) x[a] = record + a * args.activation_stride + first_column * 4;
  // two short chains a sum: a stream of one activation would wait for every step of a single one
  const auto half_of_columns = [&](int first, vf(&part)[R][A]) HK_LAMBDA_INLINE {
#pragma GCC unroll 4
    for (int k = first; k < columns; k += 2) {
      vf w[R];
      for (int r = 0; r < R; ++r) w[r] = scratch.columns[k][r];
      for (int a = 0; a < A; ++a) {
        float value;
        __builtin_memcpy(&value, x[a] + 4 * k, 4);
        const vf s = set_f(value);
        for (int r = 0; r < R; ++r) part[r][a] = fma(w[r], s, part[r][a]);
      }
    }
  };
  vf even[R][A] = {}, odd[R][A] = {};
  half_of_columns(0, even);
  half_of_columns(1, odd);
  vf acc[R][A];
  load_sums<A>(panel, i, first_column == 0, acc);
  for (int a = 0; a < A; ++a) {
    for (int r = 0; r < R; ++r) acc[r][a] += even[r][a] + odd[r][a];
  }
  store_sums<A>(panel, i, acc);
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

/// One activation: columns go from memory through registers into the sums.
template <typename F>
HK_INLINE void float_stream(const Panel& panel, const MatmulArgs& args) {
  constexpr int kWideColumns = 4 * W / F::kBytes, kUnitColumns = 16 / F::kBytes;
  const std::size_t units = (args.cols + kFloatChunk - 1) / kFloatChunk;
  vf acc[R][1] = {};
  for (std::size_t unit = 0; unit < units; ++unit) {
    const std::size_t first = unit * kFloatChunk;
    const Prefetch prefetch(panel, args, unit, units, F::kBytes * kFloatChunk);
    const int count = args.cols - first < kFloatChunk ? static_cast<int>(args.cols - first) : kFloatChunk;
    const std::size_t offset = first * F::kBytes;
    const auto* x = static_cast<const std::uint8_t*>(args.activations) + first * 4;
    vf part[R][2] = {};  // even and odd columns
    const auto add = [&](int r, int k, int columns, const vf* w) HK_LAMBDA_INLINE {
      const std::uint8_t* values = x + 4 * k;
      // operands in memory may be broadcast for free: keep the compiler from saving the vectors for the next rows
      asm("" : "+r"(values));
      for (int j = 0; j < columns; ++j) part[r][j % 2] = fma(w[j], as_f(set_i(load32(values + 4 * j))), part[r][j % 2]);
    };
    int k = 0;
    for (; k + kWideColumns <= count; k += kWideColumns) {
      for (int r = 0; r < R; ++r) {
        if (k * F::kBytes % 64 == 0) prefetch.line(r * W, k * F::kBytes);
        vf w[kWideColumns];
        unpack_wide<F>(panel.rows + r * W, offset + static_cast<std::size_t>(k) * F::kBytes, w, 1);
        add(r, k, kWideColumns, w);
      }
    }
    for (; k + kUnitColumns <= count; k += kUnitColumns) {
      for (int r = 0; r < R; ++r) {
        vf w[kUnitColumns];
        unpack_unit<F>(panel.rows + r * W, offset + static_cast<std::size_t>(k) * F::kBytes, w, 1);
        add(r, k, kUnitColumns, w);
      }
    }
    for (int r = 0; r < R && k < count; ++r) {
      vf w[kUnitColumns];
      unpack_tail<F>(panel.rows + r * W, offset + static_cast<std::size_t>(k) * F::kBytes, count - k, w, 1);
      add(r, k, count - k, w);
    }
    for (int r = 0; r < R; ++r) acc[r][0] += part[r][0] + part[r][1];
  }
  store_sums<1>(panel, 0, acc);
}

template <typename F>
void matmul_float(const MatmulArgs& args) {
  constexpr int kWideColumns = 4 * W / F::kBytes, kUnitColumns = 16 / F::kBytes;
  constexpr int kParts = R * kFloatChunk / kWideColumns;
  FloatScratch scratch;
  const std::size_t units = (args.cols + kFloatChunk - 1) / kFloatChunk;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
    if (args.n == 1) {
      float_stream<F>(panel, args);
      continue;
    }
    for (std::size_t unit = 0; unit < units; ++unit) {
      const std::size_t first = unit * kFloatChunk;
      const Prefetch prefetch(panel, args, unit, units, F::kBytes * kFloatChunk);
      const int count = args.cols - first < kFloatChunk ? static_cast<int>(args.cols - first) : kFloatChunk;
      const std::size_t offset = first * F::kBytes;
      int part = 0;
      for (int r = 0; r < R; ++r) {
        const std::uint8_t* const* rows = panel.rows + r * W;
        int k = 0;
        for (; k + kWideColumns <= count; k += kWideColumns) {
          prefetch.rows(part, kParts);
          ++part;
          unpack_wide<F>(rows, offset + static_cast<std::size_t>(k) * F::kBytes, &scratch.columns[k][r], R);
        }
        for (; k + kUnitColumns <= count; k += kUnitColumns) {
          unpack_unit<F>(rows, offset + static_cast<std::size_t>(k) * F::kBytes, &scratch.columns[k][r], R);
        }
        if (k < count)
          unpack_tail<F>(rows, offset + static_cast<std::size_t>(k) * F::kBytes, count - k, &scratch.columns[k][r], R);
      }
      for_tiles<kMaxSingleA>(
          args.n, [&]<int A>(std::size_t i) HK_LAMBDA_INLINE { float_tile<A>(scratch, count, panel, args, first, i); });
    }
  }
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
