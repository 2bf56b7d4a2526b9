// Matrix kernels of the float formats for one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/panel.h"
#include "kernels/isa/unpack_float.h"

namespace hk::kernels {
namespace {

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

/// The last columns of a row do not fill a unit: never read past a row, take a zero-padded copy.
template <typename F>
HK_INLINE void unpack_tail(const std::uint8_t* const* rows, std::size_t offset, int count, vf* columns) {
  alignas(16) std::uint8_t copies[W][16] = {};
  const std::uint8_t* pointers[W];
  for (int lane = 0; lane < W; ++lane) {
    for (int byte = 0; byte < count * F::kBytes; ++byte) copies[lane][byte] = rows[lane][offset + byte];
    pointers[lane] = copies[lane];
  }
  vf unit[16 / F::kBytes];
  unpack_unit<F>(pointers, 0, unit, 1);
  for (int k = 0; k < count; ++k) columns[k * R] = unit[k];
}

template <typename F>
void matmul_float(const MatmulArgs& args) {
  constexpr int kWideColumns = 4 * W / F::kBytes, kUnitColumns = 16 / F::kBytes;
  constexpr int kParts = R * kFloatChunk / kWideColumns;
  FloatScratch scratch;
  const std::size_t units = (args.cols + kFloatChunk - 1) / kFloatChunk;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
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
          unpack_tail<F>(rows, offset + static_cast<std::size_t>(k) * F::kBytes, count - k, &scratch.columns[k][r]);
      }
      for_tiles(args.n,
                [&]<int A>(std::size_t i) HK_LAMBDA_INLINE { float_tile<A>(scratch, count, panel, args, first, i); });
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
