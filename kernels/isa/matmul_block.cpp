// Matrix kernels of the Block32 formats for one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/panel.h"
#include "kernels/isa/unpack_block.h"

namespace hk::kernels {
namespace {

/// Blocks whose packed bytes are transposed at once: 256 columns.
inline constexpr int kUnitBlocks = 8;
/// Units that are unpacked before activations pass by: 16 KiB of steps at 16 lanes, a third of L1.
inline constexpr int kTileUnits = 2;

/// Up to so many activations are streamed: measured, 8 of them took 1.3 times as long through tiles.
inline constexpr int kStreamedA = kStreamedRows;

/// The fields of neighbouring activation rows at one block; next() moves codes and scales on to the next block.
class ActivationBlocks {
 public:
  HK_INLINE ActivationBlocks(const MatmulArgs& args, const ActivationLayout& layout, std::size_t i, std::size_t block)
      : rows_(args.activation_stride) {
    const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
    codes_ = record + block * 32;
    scales_ = record + layout.scales + block * 4;
    sums_ = record + layout.sums + block * 4;
    sums16_ = record + layout.sums16 + block * 4;
  }
  HK_INLINE vi step(int a, int u) const { return set_i(load32(rows_.row(codes_, a) + 4 * u)); }
  HK_INLINE float scale(int a) const {
    float value;
    __builtin_memcpy(&value, rows_.row(scales_, a), 4);
    return value;
  }
  /// The scales, sums of 32 and sums of 16 of row a, one for each block (two for each) from here on.
  HK_INLINE const std::uint8_t* scales(int a) const { return rows_.row(scales_, a); }
  HK_INLINE const std::uint8_t* sums(int a) const { return rows_.row(sums_, a); }
  HK_INLINE const std::uint8_t* sums16(int a) const { return rows_.row(sums16_, a); }
  HK_INLINE void next() {
    advance(codes_, 32);
    advance(scales_, 4);
  }
  /// Fetches what row a needs of kChunkBlocks blocks, or (codes) of two blocks.
  template <typename F>
  HK_INLINE void fetch_sums(int a) const {
    __builtin_prefetch(rows_.row(scales_, a));
    if constexpr (F::kHasMin || (F::kBias != 0 && F::kScales == 1)) __builtin_prefetch(rows_.row(sums_, a));
    if constexpr (F::kBias != 0 && F::kScales == 2) __builtin_prefetch(rows_.row(sums16_, a));
  }
  HK_INLINE void fetch_codes(int a) const { __builtin_prefetch(rows_.row(codes_, a)); }

 private:
  RowDistances rows_;
  const std::uint8_t *codes_, *scales_, *sums_, *sums16_;
};

/// What takes the biases off the sums of A activation rows, or what their minima are multiplied with, for kMost blocks.
/// Computed at once and read back by broadcasting loads: one by one they would go through the shuffle port.
template <typename F, int A, int kMost>
class BlockTerms {
 public:
  HK_INLINE void set(const ActivationBlocks& x, int blocks) {
    for (int a = 0; a < A; ++a) {
      // a constant count where that is the rule makes vectors of it
      if (blocks == kMost) {
        set_row(a, x, kMost);
      } else {
        set_row(a, x, blocks);
      }
    }
  }
  HK_INLINE vi start(int a, int block, int half) const {
    if constexpr (F::kBias == 0) {
      return vi{};
    } else {
      return set_i(starts_[a][block * F::kScales + half]);
    }
  }
  HK_INLINE vf scaled_sum(int a, int block) const { return set_f(scaled_[a][block]); }

 private:
  HK_INLINE void set_row(int a, const ActivationBlocks& x, int blocks) {
    if constexpr (F::kBias != 0 && F::kScales == 1) {
      for (int b = 0; b < blocks; ++b) starts_[a][b] = -F::kBias * load32(x.sums(a) + 4 * b);
    }
    if constexpr (F::kBias != 0 && F::kScales == 2) {
      for (int b = 0; b < 2 * blocks; ++b)
        starts_[a][b] = -F::kBias * static_cast<std::int16_t>(load16(x.sums16(a) + 2 * b));
    }
    if constexpr (F::kHasMin) {
      for (int b = 0; b < blocks; ++b) {
        float scale;
        __builtin_memcpy(&scale, x.scales(a) + 4 * b, 4);
        scaled_[a][b] = scale * static_cast<float>(load32(x.sums(a) + 4 * b));
      }
    }
  }

  static constexpr int kStarts = F::kBias == 0 ? 0 : A, kScaled = F::kHasMin ? A : 0;
  alignas(64) std::int32_t starts_[kStarts == 0 ? 1 : kStarts][kMost * F::kScales];
  alignas(64) float scaled_[kScaled == 0 ? 1 : kScaled][kMost];
};

template <typename F>
inline constexpr int kUnitWords = F::kPhaseWords* kUnitBlocks / F::kPhases;
template <typename F>
inline constexpr int kUnitBytes = 4 * kUnitWords<F>;

template <typename F>
HK_INLINE std::size_t row_bytes(const MatmulArgs& args) {
  return args.cols / 32 * kUnitBytes<F> / kUnitBlocks;
}
/// Behind the last row that the call may read.
template <typename F>
HK_INLINE const std::uint8_t* end_of_weights(const MatmulArgs& args) {
  return static_cast<const std::uint8_t*>(args.weights) + (args.rows - 1) * args.weight_stride + row_bytes<F>(args);
}

/// Up to kUnitBlocks blocks of W rows, transposed.
template <typename F>
struct Unit {
  alignas(64) vi words[kUnitWords<F>];

  /// Nothing from `end` on may be read.
  HK_INLINE void load(const std::uint8_t* const* rows, std::size_t offset, int blocks, const std::uint8_t* end) {
    // behind a row's last blocks lie the next row's, which nobody looks at
    if (blocks == kUnitBlocks || static_cast<std::size_t>(end - rows[W - 1]) >= offset + kUnitBytes<F>) {
      load_words<kUnitWords<F>>(rows, offset, words);
      return;
    }
    std::uint8_t copies[W][kUnitBytes<F>] = {};
    const std::uint8_t* pointers[W];
    for (int lane = 0; lane < W; ++lane) {
      pointers[lane] = copies[lane];
      __builtin_memcpy(copies[lane], rows[lane] + offset,
                       static_cast<std::size_t>(blocks * kUnitBytes<F> / kUnitBlocks));
    }
    load_words<kUnitWords<F>>(pointers, 0, words);
  }
  /// Calls use(b, steps, scale, min) for each of the blocks.
  template <typename Use>
  HK_INLINE void for_blocks(int blocks, const Use& use) const {
    for (int b = 0; b < blocks; b += F::kPhases) for_phases<0>(b, blocks, use);
  }

 private:
  template <int kPhase, typename Use>
  HK_INLINE void for_phases(int b, int blocks, const Use& use) const {
    if constexpr (kPhase < F::kPhases) {
      if (b + kPhase >= blocks) return;
      vi steps[8];
      vf scale[F::kScales], min{};
      F::template unpack<kPhase>(words + b / F::kPhases * F::kPhaseWords, steps, scale, &min);
      use(b + kPhase, steps, scale, min);
      for_phases<kPhase + 1>(b, blocks, use);
    }
  }
};

template <typename F>
struct BlockScratch {
  alignas(64) vi steps[kTileUnits * kUnitBlocks][8][R];
  vf scale[kTileUnits * kUnitBlocks][F::kScales][R];
  vf min[F::kHasMin ? kTileUnits * kUnitBlocks : 1][R];
  PanelSums sums;
};

/// A function of its own: the registers then serve nothing but the tile.
template <typename F, int A>
HK_NOINLINE void block_tile(BlockScratch<F>& scratch, int blocks, const MatmulArgs& args,
                            const ActivationLayout& layout, std::size_t first_block, std::size_t first, std::size_t i) {
  ActivationBlocks x(args, layout, first + i, first_block), ahead(args, layout, first + i + A, first_block);
  BlockTerms<F, A, kTileUnits * kUnitBlocks> terms;
  terms.set(x, blocks);
  vf acc[R][A];
  load_sums<A>(scratch.sums, i, first_block == 0, acc);
  for (int a = 0; a < A; ++a) ahead.fetch_sums<F>(a);
  for (int b = 0; b < blocks; ++b) {
    for (int a = b % 2; a < A; a += 2) ahead.fetch_codes(a);
    if (b % 2 == 1) ahead.next(), ahead.next();
    for (int part = 0; part < F::kScales; ++part) {
      constexpr int kSteps = 8 / F::kScales;
      vi total[R][A];
      for (int a = 0; a < A; ++a) {
        const vi start = terms.start(a, b, part);
        for (int r = 0; r < R; ++r) total[r][a] = start;
      }
#pragma GCC unroll 8
      for (int u = part * kSteps; u < (part + 1) * kSteps; ++u) {
        vi w[R];
        for (int r = 0; r < R; ++r) w[r] = scratch.steps[b][u][r];
        for (int a = 0; a < A; ++a) {
          const vi s = x.step(a, u);
          for (int r = 0; r < R; ++r) total[r][a] = dot<F::kWide>(total[r][a], w[r], s);
        }
      }
      for (int a = 0; a < A; ++a) {
        const vf scale = set_f(x.scale(a));
        for (int r = 0; r < R; ++r)
          acc[r][a] = fma(to_float(total[r][a]), scratch.scale[b][part][r] * scale, acc[r][a]);
      }
    }
    if constexpr (F::kHasMin) {
      for (int a = 0; a < A; ++a) {
        const vf sum = terms.scaled_sum(a, b);
        for (int r = 0; r < R; ++r) acc[r][a] = fma(scratch.min[b][r], sum, acc[r][a]);
      }
    }
    x.next();
  }
  store_sums<A>(acc, scratch.sums, i);
}

/// One run of 32 columns of W rows against A activations.
template <typename F, int A>
HK_INLINE void block_dots(const vi* steps, const vf* scale, vf min, const ActivationBlocks& x,
                          const BlockTerms<F, A, kUnitBlocks>& terms, int b, vf (&acc)[A]) {
  constexpr int kSteps = 8 / F::kScales, kChains = A < 4 ? 2 : 1;  // few chains would wait for each other
  for (int part = 0; part < F::kScales; ++part) {
    vi total[A][kChains] = {};
    for (int a = 0; a < A; ++a) total[a][0] = terms.start(a, b, part);
#pragma GCC unroll 8
    for (int u = part * kSteps; u < (part + 1) * kSteps; ++u) {
      for (int a = 0; a < A; ++a) total[a][u % kChains] = dot<F::kWide>(total[a][u % kChains], steps[u], x.step(a, u));
    }
    for (int a = 0; a < A; ++a) {
      const vi sum = kChains == 1 ? total[a][0] : total[a][0] + total[a][kChains - 1];
      acc[a] = fma(to_float(sum), scale[part] * set_f(x.scale(a)), acc[a]);
    }
  }
  if constexpr (F::kHasMin) {
    for (int a = 0; a < A; ++a) acc[a] = fma(min, terms.scaled_sum(a, b), acc[a]);
  }
}

/// A panel against kGroups * A activations at most: blocks go from memory through registers into the sums.
template <typename F, int A, int kGroups>
HK_NOINLINE void block_stream(const Panel& panel, const MatmulArgs& args, const ActivationLayout& layout) {
  const std::size_t blocks = args.cols / 32, units = (blocks + kUnitBlocks - 1) / kUnitBlocks;
  const std::size_t second = args.n - A;  // groups may overlap
  vf sums[kGroups][R][A] = {};
  Unit<F> packed;
  WindowAhead<kUnitBytes<F>> ahead(panel, args, row_bytes<F>(args));
  const std::uint8_t* end = end_of_weights<F>(args);
  for (std::size_t unit = 0; unit < units; ++unit) {
    ahead.template unit<R * kUnitBlocks>(unit);
    const std::size_t first = unit * kUnitBlocks;
    const int count = blocks - first < kUnitBlocks ? static_cast<int>(blocks - first) : kUnitBlocks;
    BlockTerms<F, A, kUnitBlocks> terms[kGroups];
    for (int group = 0; group < kGroups; ++group)
      terms[group].set(ActivationBlocks(args, layout, group == 0 ? 0 : second, first), count);
#pragma GCC unroll 1
    for (int r = 0; r < R; ++r) {
      packed.load(panel.rows + r * W, unit * kUnitBytes<F>, count, end);
      ActivationBlocks x(args, layout, 0, first), y(args, layout, second, first);
      vf acc[kGroups][A];
      for (int group = 0; group < kGroups; ++group) {
        for (int a = 0; a < A; ++a) acc[group][a] = sums[group][r][a];
      }
      packed.for_blocks(count, [&](int b, const vi* steps, const vf* scale, vf min) HK_LAMBDA_INLINE {
        ahead.part();
        block_dots<F, A>(steps, scale, min, x, terms[0], b, acc[0]);
        x.next();
        if constexpr (kGroups == 2) {
          block_dots<F, A>(steps, scale, min, y, terms[1], b, acc[1]);
          y.next();
        }
      });
      for (int group = 0; group < kGroups; ++group) {
        for (int a = 0; a < A; ++a) sums[group][r][a] = acc[group][a];
      }
    }
  }
  store_groups<A, kGroups>(panel, sums, second);
}

/// A panel against many activations.
template <typename F>
HK_NOINLINE void block_tiles(const Panel& panel, const MatmulArgs& args, const ActivationLayout& layout,
                             std::size_t first_activation, std::size_t n, BlockScratch<F>& scratch) {
  const std::size_t blocks = args.cols / 32, units = (blocks + kUnitBlocks - 1) / kUnitBlocks;
  Unit<F> packed;
  WindowAhead<kUnitBytes<F>> ahead(panel, args, row_bytes<F>(args));
  const std::uint8_t* end = end_of_weights<F>(args);
  for (std::size_t first_unit = 0; first_unit < units; first_unit += kTileUnits) {
    int unpacked = 0;
    for (std::size_t unit = first_unit; unit < units && unit < first_unit + kTileUnits; ++unit) {
      ahead.template unit<R * kUnitBlocks>(unit);
      const std::size_t first = unit * kUnitBlocks;
      const int count = blocks - first < kUnitBlocks ? static_cast<int>(blocks - first) : kUnitBlocks;
#pragma GCC unroll 1
      for (int r = 0; r < R; ++r) {
        packed.load(panel.rows + r * W, unit * kUnitBytes<F>, count, end);
        packed.for_blocks(count, [&](int b, const vi* steps, const vf* scale, vf min) HK_LAMBDA_INLINE {
          ahead.part();
          for (int u = 0; u < 8; ++u) scratch.steps[unpacked + b][u][r] = steps[u];
          for (int part = 0; part < F::kScales; ++part) scratch.scale[unpacked + b][part][r] = scale[part];
          if constexpr (F::kHasMin) scratch.min[unpacked + b][r] = min;
        });
      }
      unpacked += count;
    }
    const bool last = first_unit + kTileUnits >= units;
    for_tiles<kMaxA, kStreamedA>(n, [&]<int A>(std::size_t i) HK_LAMBDA_INLINE {
      if (last) ask_for_results<A>(panel, first_activation + i);
      block_tile<F, A>(scratch, unpacked, args, layout, first_unit * kUnitBlocks, first_activation, i);
    });
  }
  if (blocks == 0) return store_zeros(panel, first_activation, n);
  for (std::size_t i = 0; i < n; ++i) store_results(panel, first_activation + i, scratch.sums.of[i]);
}

template <typename F>
void matmul_block(const MatmulArgs& args) {
  const ActivationLayout layout = activation_layout(ActivationFormat::kQ8x32, args.cols);
  for_panels<kStreamedA, BlockScratch<F>>(
      args,
      [&]<int A, int kGroups>(const Panel& panel)
          HK_LAMBDA_INLINE { block_stream<F, A, kGroups>(panel, args, layout); },
      [&](const Panel& panel, std::size_t first, std::size_t n, BlockScratch<F>& scratch)
          HK_LAMBDA_INLINE { block_tiles<F>(panel, args, layout, first, n, scratch); });
}

}  // namespace

namespace HK_LEVEL {

MatmulFn matmul_block_format(StorageType type) {
  switch (type) {
    case StorageType::kQ1_0:
      return matmul_block<Q1_0>;
    case StorageType::kQ2_0:
      return matmul_block<Q2_0>;
    case StorageType::kQ4_0:
      return matmul_block<Q4_0>;
    case StorageType::kQ4_1:
      return matmul_block<Q4_1>;
    case StorageType::kQ5_0:
      return matmul_block<Q5_0>;
    case StorageType::kQ5_1:
      return matmul_block<Q5_1>;
    case StorageType::kQ8_0:
      return matmul_block<Q8_0>;
    case StorageType::kIQ4_NL:
      return matmul_block<IQ4_NL>;
    case StorageType::kMXFP4:
      return matmul_block<MXFP4>;
    case StorageType::kNVFP4:
      return matmul_block<NVFP4>;
    default:
      return nullptr;
  }
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
