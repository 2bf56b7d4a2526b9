// The matrix kernel of the Super formats, generic over unpackers (unpack_super.h, unpack_grid.h).
//
// Part of the level sources (see vec.h).
#pragma once

#include "kernels/isa/panel.h"
#include "kernels/isa/unpack_super.h"

namespace hk::kernels {
namespace {

template <typename F>
inline constexpr int kScaleGroups = F::kFolded ? 1 : 256 / F::kGroup;
template <typename F>
inline constexpr int kMinPairs = F::kMinGroup == 0 ? 0 : 128 / F::kMinGroup;
/// Index of the first activation sum that goes with groups of this size.
constexpr std::size_t first_sum(int group) { return group == 16 ? kSumsOf16 : group == 32 ? kSumsOf32 : kSumOf256; }

template <typename F>
struct SuperScratch {
  alignas(64) vi steps[64][R];
  typename F::Head head[R];
};

/// The activation's part of one super-block.
struct ActivationSuper {
  const std::uint8_t* codes;
  const std::uint8_t* sums;
  const std::uint8_t* scale;
  HK_INLINE ActivationSuper(const MatmulArgs& args, const ActivationLayout& layout, std::size_t i, std::size_t block) {
    const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
    codes = record + block * 256;
    sums = record + layout.sums + block * kSuperSums * 2;
    scale = record + layout.scales + block * 4;
  }
};

/// Takes the bias off group g of kScaleGroups.
template <typename F>
HK_INLINE vi bias_start(const std::uint8_t* sums, int g) {
  if constexpr (F::kBias == 0) {
    return vi{};
  } else {
    constexpr std::size_t kFirst = first_sum(F::kFolded ? 256 : F::kGroup);
    return set_i(-F::kBias * static_cast<std::int16_t>(load16(sums + 2 * (kFirst + g))));
  }
}

/// acc += d * scale * total (+ -dmin * scale * minima): the float end of a super-block.
template <typename F>
HK_INLINE vf super_end(const typename F::Head& head, vi total, const std::uint8_t* sums, vf scale, vf acc) {
  acc = fma(to_float(total), head.d * scale, acc);
  if constexpr (F::kMinGroup != 0) {
    vi min{};
    for (int j = 0; j < kMinPairs<F>; ++j)
      min = dot_s16(min, head.mins[j], set_i(load32(sums + 2 * first_sum(F::kMinGroup) + 4 * j)));
    acc = fma(to_float(min), head.dmin * scale, acc);
  }
  return acc;
}

/// Brings bytes from the order of elements into pair order: of 16 bytes as pairs, 0 4 1 5 2 6 3 7.
HK_INLINE vi to_pair_order(vi bytes) {
  alignas(16) static constexpr std::int8_t kPattern[16] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  return permute16(bytes, kPattern);
}
/// Brings four steps back from it.
HK_INLINE void from_pair_order(vi* s) {
  const vi s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3];
  s[0] = merge_bits(0xFFFF, s0, s1 << 16);
  s[1] = merge_bits(0xFFFF, s2, s3 << 16);
  s[2] = merge_bits(0xFFFF, shr(s0, 16), s1);
  s[3] = merge_bits(0xFFFF, shr(s2, 16), s3);
}

template <typename F, int A>
HK_INLINE void super_tile(const SuperScratch<F>& scratch, const Panel& panel, const MatmulArgs& args,
                          const ActivationLayout& layout, std::size_t block, std::size_t i) {
  constexpr int kGroups = kScaleGroups<F>, kSteps = 64 / kGroups;
  const ActivationSuper x(args, layout, i, block);
  const std::uint8_t* codes[A];
  for (int a = 0; a < A; ++a) codes[a] = x.codes + a * args.activation_stride;
  const std::ptrdiff_t sums = x.sums - x.codes, scales = x.scale - x.codes;
  vi total[R][A] = {};
#pragma GCC unroll 1
  for (int g = 0; g < kGroups; ++g) {
    vi part[R][A];
    for (int a = 0; a < A; ++a) {
      const vi start = bias_start<F>(codes[a] + sums, g);
      for (int r = 0; r < R; ++r) part[r][a] = start;
    }
#pragma GCC unroll 8
    for (int u = 0; u < kSteps; ++u) {
      vi w[R];
      for (int r = 0; r < R; ++r) w[r] = scratch.steps[g * kSteps + u][r];
      for (int a = 0; a < A; ++a) {
        const vi s = set_i(load32(codes[a] + 4 * (g * kSteps + u)));
        for (int r = 0; r < R; ++r) part[r][a] = dot<F::kWide>(part[r][a], w[r], s);
      }
    }
    if constexpr (F::kFolded) {
      for (int a = 0; a < A; ++a) {
        for (int r = 0; r < R; ++r) total[r][a] = part[r][a];
      }
    } else {
      for (int r = 0; r < R; ++r) {
        const vi scale = scratch.head[r].scales[g];
        for (int a = 0; a < A; ++a) total[r][a] += part[r][a] * scale;
      }
    }
  }
  vf acc[R][A];
  load_sums<A>(panel, i, block == 0, acc);
  for (int a = 0; a < A; ++a) {
    float scale;
    __builtin_memcpy(&scale, codes[a] + scales, 4);
    for (int r = 0; r < R; ++r)
      acc[r][a] = super_end<F>(scratch.head[r], total[r][a], codes[a] + sums, set_f(scale), acc[r][a]);
  }
  store_sums<A>(panel, i, acc);
}

/// One activation: sub-blocks go from memory through registers into the sums.
template <typename F>
HK_INLINE void super_stream(const Panel& panel, const MatmulArgs& args, const ActivationLayout& layout) {
  constexpr int kSubs = 256 / F::kSub, kSubSteps = F::kSub / 4;
  constexpr int kGroupSteps = F::kFolded ? kSubSteps : F::kGroup / 4;
  const std::size_t blocks = args.cols / 256;
  vf acc[R][1] = {};
  for (std::size_t block = 0; block < blocks; ++block) {
    const Prefetch prefetch(panel, args, block, blocks, F::kBytes);
    const ActivationSuper x(args, layout, 0, block);
    float scale;
    __builtin_memcpy(&scale, x.scale, 4);
    const std::size_t offset = block * F::kBytes;
    const std::uint8_t* codes = x.codes;
    alignas(64) std::uint8_t ordered[256];
    if constexpr (F::kPairOrder) {
      for (int k = 0; k < 256; k += 4 * W) store_i(ordered + k, to_pair_order(load_i(x.codes + k)));
      codes = ordered;
    }
    for (int r = 0; r < R; ++r) {
      typename F::Head head;
      F::head(panel.rows + r * W, offset, head);
      vi total = F::kFolded ? bias_start<F>(x.sums, 0) : vi{};
#pragma GCC unroll 1
      for (int c = 0; c < kSubs; ++c) {
        prefetch.rows(r * kSubs + c, R * kSubs);
        vi steps[kSubSteps];
        F::sub(panel.rows + r * W, offset, c, head, steps);
        for (int g = 0; g < kSubSteps / kGroupSteps; ++g) {
          const int group = c * (kSubSteps / kGroupSteps) + g;
          // several chains: one would take four or five cycles a step
          constexpr int kChains = kGroupSteps < 16 ? 2 : 4;
          vi part[kChains] = {};
          if constexpr (!F::kFolded) part[0] = bias_start<F>(x.sums, group);
#pragma GCC unroll 64
          for (int u = 0; u < kGroupSteps; ++u) {
            const int step = g * kGroupSteps + u;
            part[u % kChains] = dot<F::kWide>(part[u % kChains], steps[step],
                                              set_i(load32(codes + F::kSub * c + 4 * F::position(step))));
          }
          vi sum = part[0] + part[1];
          if constexpr (kChains == 4) sum += part[2] + part[3];
          total += F::kFolded ? sum : sum * head.scales[group];
        }
      }
      acc[r][0] = super_end<F>(head, total, x.sums, set_f(scale), acc[r][0]);
    }
  }
  store_sums<1>(panel, 0, acc);
}

/// S: the unpacker for one activation, when another one than F is better there.
template <typename F, typename S = F>
void matmul_super(const MatmulArgs& args) {
  constexpr int kSubs = 256 / F::kSub, kSubSteps = F::kSub / 4;
  const ActivationLayout layout = activation_layout(ActivationFormat::kQ8x256, args.cols);
  const std::size_t blocks = args.cols / 256;
  SuperScratch<F> scratch;
  for (std::size_t row = 0; row < args.rows; row += kPanel) {
    const Panel panel = make_panel(args, row);
    if (args.n == 1) {
      super_stream<S>(panel, args, layout);
      continue;
    }
    for (std::size_t block = 0; block < blocks; ++block) {
      const Prefetch prefetch(panel, args, block, blocks, F::kBytes);
      for (int r = 0; r < R; ++r) {
        const std::uint8_t* const* rows = panel.rows + r * W;
        F::head(rows, block * F::kBytes, scratch.head[r]);
        for (int c = 0; c < kSubs; ++c) {
          prefetch.rows(r * kSubs + c, R * kSubs);
          vi steps[kSubSteps];
          F::sub(rows, block * F::kBytes, c, scratch.head[r], steps);
          if constexpr (F::kPairOrder) {
            for (int u = 0; u < kSubSteps; u += 4) from_pair_order(steps + u);
          }
          for (int u = 0; u < kSubSteps; ++u) scratch.steps[c * kSubSteps + F::position(u)][r] = steps[u];
        }
      }
      for_tiles<kMaxSingleA>(args.n, [&]<int A>(std::size_t i) HK_LAMBDA_INLINE {
        super_tile<F, A>(scratch, panel, args, layout, block, i);
      });
    }
  }
}

}  // namespace
}  // namespace hk::kernels
