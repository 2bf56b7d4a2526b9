// Matrix kernels of the Block32 formats for one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/panel.h"
#include "kernels/isa/unpack_block.h"

namespace hk::kernels {
namespace {

inline constexpr int kChunkBlocks = 8;  // 256 columns: 8 KiB of unpacked weights at 16 lanes, a sixth of L1

/// Where an activation's codes of one run of 32 stand, and what belongs to them.
struct ActivationBlock {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  const std::uint8_t* sums;
  const std::uint8_t* sums16;
  HK_INLINE ActivationBlock(const MatmulArgs& args, const ActivationLayout& layout, std::size_t i, std::size_t block) {
    const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
    codes = record + block * 32;
    scales = record + layout.scales + block * 4;
    sums = record + layout.sums + block * 4;
    sums16 = record + layout.sums16 + block * 4;
  }
  HK_INLINE float scale(int b) const {
    float value;
    __builtin_memcpy(&value, scales + 4 * b, 4);
    return value;
  }
  /// What takes the bias off again, for the whole run or (kScales == 2) for one half of it.
  template <typename F>
  HK_INLINE vi start(int b, int half) const {
    if constexpr (F::kBias == 0) {
      return vi{};
    } else if constexpr (F::kScales == 1) {
      return set_i(-F::kBias * load32(sums + 4 * b));
    } else {
      return set_i(-F::kBias * static_cast<std::int16_t>(load16(sums16 + 4 * b + 2 * half)));
    }
  }
};

template <typename F>
struct BlockScratch {
  alignas(64) vi steps[kChunkBlocks][8][R];
  vf scale[kChunkBlocks][F::kScales][R];
  vf min[F::kHasMin ? kChunkBlocks : 1][R];
};

template <typename F, int A>
HK_INLINE void block_tile(const BlockScratch<F>& scratch, int blocks, const Panel& panel, const MatmulArgs& args,
                          const ActivationLayout& layout, std::size_t first_block, std::size_t i) {
  // one pointer an activation; the other fields lie at the same distance in every record
  const ActivationBlock x(args, layout, i, first_block);
  const std::uint8_t* codes[A];
  for (int a = 0; a < A; ++a) codes[a] = x.codes + a * args.activation_stride;
  const std::ptrdiff_t scales = x.scales - x.codes, sums = x.sums - x.codes, sums16 = x.sums16 - x.codes;
  vf acc[R][A];
  load_sums<A>(panel, i, first_block == 0, acc);
  for (int b = 0; b < blocks; ++b) {
    for (int part = 0; part < F::kScales; ++part) {
      constexpr int kSteps = 8 / F::kScales;
      vi total[R][A];
      for (int a = 0; a < A; ++a) {
        vi start{};
        if constexpr (F::kBias != 0) {
          start = set_i(-F::kBias * (F::kScales == 1
                                         ? load32(codes[a] + sums + 4 * b)
                                         : static_cast<std::int16_t>(load16(codes[a] + sums16 + 4 * b + 2 * part))));
        }
        for (int r = 0; r < R; ++r) total[r][a] = start;
      }
#pragma GCC unroll 8
      for (int u = part * kSteps; u < (part + 1) * kSteps; ++u) {
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
        for (int r = 0; r < R; ++r)
          acc[r][a] = fma(to_float(total[r][a]), scratch.scale[b][part][r] * set_f(scale), acc[r][a]);
        if constexpr (F::kHasMin) {
          const vf sum = set_f(scale * static_cast<float>(load32(codes[a] + sums + 4 * b)));
          for (int r = 0; r < R; ++r) acc[r][a] = fma(scratch.min[b][r], sum, acc[r][a]);
        }
      }
    }
  }
  store_sums<A>(panel, i, acc);
}

/// One activation: blocks go from memory through registers into the sums.
template <typename F>
HK_INLINE void block_stream(const Panel& panel, const MatmulArgs& args, const ActivationLayout& layout) {
  const std::size_t blocks = args.cols / 32, units = (blocks + kChunkBlocks - 1) / kChunkBlocks;
  constexpr int kUnitBytes = F::kBytes * kChunkBlocks / F::kParts;
  vf acc[R][1] = {};
  for (std::size_t unit = 0; unit < units; ++unit) {
    const Prefetch prefetch(panel, args, unit, units, kUnitBytes);
    const std::size_t first = unit * kChunkBlocks;
    const int count = blocks - first < kChunkBlocks ? static_cast<int>(blocks - first) : kChunkBlocks;
    const ActivationBlock x(args, layout, 0, first);
    for (int b = 0; b < count; ++b) {
      const std::size_t offset = (first + b) / F::kParts * F::kBytes;
      prefetch.rows(b, kChunkBlocks);
      for (int r = 0; r < R; ++r) {
        vi steps[8];
        vf scale[F::kScales], min{};
        F::unpack(panel.rows + r * W, offset, b % F::kParts, steps, scale, &min);
        for (int part = 0; part < F::kScales; ++part) {
          constexpr int kSteps = 8 / F::kScales;
          vi even = x.start<F>(b, part), odd{};  // two chains: half the latency
          for (int u = part * kSteps; u < (part + 1) * kSteps; u += 2) {
            even = dot<F::kWide>(even, steps[u], set_i(load32(x.codes + 32 * b + 4 * u)));
            odd = dot<F::kWide>(odd, steps[u + 1], set_i(load32(x.codes + 32 * b + 4 * u + 4)));
          }
          acc[r][0] = fma(to_float(even + odd), scale[part] * set_f(x.scale(b)), acc[r][0]);
        }
        if constexpr (F::kHasMin) {
          acc[r][0] = fma(min, set_f(x.scale(b) * static_cast<float>(load32(x.sums + 4 * b))), acc[r][0]);
        }
      }
    }
  }
  store_sums<1>(panel, 0, acc);
}

template <typename F>
void matmul_block(const MatmulArgs& args) {
  const ActivationLayout layout = activation_layout(ActivationFormat::kQ8x32, args.cols);
  const std::size_t blocks = args.cols / 32;
  BlockScratch<F> scratch;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
    if (args.n == 1) {
      block_stream<F>(panel, args, layout);
      continue;
    }
    const std::size_t units = (blocks + kChunkBlocks - 1) / kChunkBlocks;
    for (std::size_t unit = 0; unit < units; ++unit) {
      const Prefetch prefetch(panel, args, unit, units, F::kBytes * kChunkBlocks / F::kParts);
      const std::size_t first = unit * kChunkBlocks;
      const int count = blocks - first < kChunkBlocks ? static_cast<int>(blocks - first) : kChunkBlocks;
      for (int b = 0; b < count; ++b) {
        prefetch.rows(b, kChunkBlocks);
        for (int r = 0; r < R; ++r) {
          vi steps[8];
          vf scale[F::kScales];
          F::unpack(panel.rows + r * W, (first + b) / F::kParts * F::kBytes, b % F::kParts, steps, scale,
                    F::kHasMin ? &scratch.min[b][r] : nullptr);
          for (int u = 0; u < 8; ++u) scratch.steps[b][u][r] = steps[u];
          for (int part = 0; part < F::kScales; ++part) scratch.scale[b][part][r] = scale[part];
        }
      }
      for_tiles<kMaxA>(args.n, [&]<int A>(std::size_t i) HK_LAMBDA_INLINE {
        block_tile<F, A>(scratch, count, panel, args, layout, first, i);
      });
    }
  }
}

}  // namespace

namespace HK_LEVEL {

MatmulFn matmul_block_format(StorageType type) {
  switch (type) {
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
