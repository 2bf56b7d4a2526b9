// The matrix kernel of the Super formats, generic over unpackers (unpack_super.h, unpack_grid.h).
//
// Part of the level sources (see vec.h).
#pragma once

#include "kernels/isa/panel.h"
#include "kernels/isa/unpack_super.h"

namespace hk::kernels {
namespace {

/// Up to so many activations are streamed: of eight, q6_k takes 0.8 times as long as through tiles, q4_k as long.
inline constexpr int kStreamedA = kStreamedRows;
/// Of formats that are cheap to unpack, or dear to multiply as they come in streams.
inline constexpr int kFewStreamedA = 4;

template <typename F>
inline constexpr int kScaleGroups = F::kFolded ? 1 : 256 / F::kGroup;
template <typename F>
inline constexpr int kMinPairs = F::kMinGroup == 0 ? 0 : 128 / F::kMinGroup;
/// Index of the first activation sum that goes with groups of this size.
constexpr std::size_t first_sum(int group) { return group == 16 ? kSumsOf16 : group == 32 ? kSumsOf32 : kSumOf256; }

/// One super-block of W rows, transposed.
template <typename F>
struct SuperUnit {
  alignas(64) vi words[F::kWords];
  typename F::Head head;

  HK_INLINE void load(const std::uint8_t* const* rows, std::size_t block) {
    const std::size_t offset = block * F::kBytes;
    load_words<F::kWords>(rows, offset + F::kFirst, words);
    const vi edge = F::kEdge == Edge::kFront  ? load_rows4(rows, offset)
                    : F::kEdge == Edge::kBack ? load_rows4_before(rows, offset + F::kBytes)
                                              : vi{};
    F::head(words, edge, head);
  }
};

template <typename F>
struct SuperScratch {
  alignas(64) vi steps[64][R];
  typename F::Head head[R];
  PanelSums sums;
};

/// The fields of neighbouring activation rows at one super-block.
class ActivationSupers {
 public:
  HK_INLINE ActivationSupers(const MatmulArgs& args, const ActivationLayout& layout, std::size_t i, std::size_t block)
      : rows_(args.activation_stride), code_rows_(rows_) {
    const auto* record = static_cast<const std::uint8_t*>(args.activations) + i * args.activation_stride;
    codes_ = record + block * 256;
    sums_ = record + layout.sums + block * kSuperSums * 2;
    scales_ = record + layout.scales + block * 4;
  }
  HK_INLINE const std::uint8_t* codes(int a) const { return code_rows_.row(codes_, a); }
  /// Takes the codes from copies, 256 bytes apart.
  HK_INLINE void use_codes(const std::uint8_t* copies) {
    codes_ = copies;
    code_rows_ = RowDistances(256);
  }
  HK_INLINE vi step(int a, int u) const { return set_i(load32(code_rows_.row(codes_, a) + 4 * u)); }
  HK_INLINE vf scale(int a) const {
    float value;
    __builtin_memcpy(&value, rows_.row(scales_, a), 4);
    return set_f(value);
  }
  HK_INLINE const std::uint8_t* sums(int a) const { return rows_.row(sums_, a); }
  HK_INLINE void fetch_sums(int a) const {
    __builtin_prefetch(rows_.row(sums_, a));
    __builtin_prefetch(rows_.row(scales_, a));
  }

 private:
  RowDistances rows_, code_rows_;
  const std::uint8_t *codes_, *sums_, *scales_;
};

/// What takes the bias off each group's sum, for kCount activations. Computed at once and read back by broadcasting
/// loads: one by one they would go through the shuffle port.
template <typename F, int kCount>
class BiasStarts {
 public:
  HK_INLINE void set(int a, const std::uint8_t* sums) {
    if constexpr (F::kBias != 0) {
      constexpr std::size_t kFirst = first_sum(F::kFolded ? 256 : F::kGroup);
      for (int g = 0; g < kScaleGroups<F>; ++g)
        starts_[a][g] = -F::kBias * static_cast<std::int16_t>(load16(sums + 2 * (kFirst + g)));
    }
  }
  HK_INLINE vi start(int a, int g) const {
    if constexpr (F::kBias == 0) {
      return vi{};
    } else {
      return set_i(starts_[a][g]);
    }
  }

 private:
  alignas(64) std::int32_t starts_[F::kBias == 0 ? 1 : kCount][kScaleGroups<F>];
};

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

/// A function of its own: the registers then serve nothing but the tile.
template <typename F, int A>
HK_NOINLINE void super_tile(SuperScratch<F>& scratch, const MatmulArgs& args, const ActivationLayout& layout,
                            std::size_t block, std::size_t first, std::size_t i) {
  constexpr int kGroups = kScaleGroups<F>, kSteps = 64 / kGroups;
  constexpr int kGroupsALine = kSteps < 16 ? 16 / kSteps : 1, kLinesAGroup = kSteps < 16 ? 1 : kSteps / 16;
  const ActivationSupers x(args, layout, first + i, block), ahead(args, layout, first + i + A, block);
  BiasStarts<F, A> starts;
  for (int a = 0; a < A; ++a) {
    ahead.fetch_sums(a);
    starts.set(a, x.sums(a));
  }
  vi total[R][A] = {};
#pragma GCC unroll 1
  for (int g = 0; g < kGroups; ++g) {
    if (g % kGroupsALine == 0) {
      for (int a = 0; a < A; ++a) {
        for (int line = 0; line < kLinesAGroup; ++line) __builtin_prefetch(ahead.codes(a) + 4 * g * kSteps + 64 * line);
      }
    }
    vi part[R][A];
    for (int a = 0; a < A; ++a) {
      const vi start = starts.start(a, g);
      for (int r = 0; r < R; ++r) part[r][a] = start;
    }
#pragma GCC unroll 8
    for (int u = 0; u < kSteps; ++u) {
      vi w[R];
      for (int r = 0; r < R; ++r) w[r] = scratch.steps[g * kSteps + u][r];
      for (int a = 0; a < A; ++a) {
        const vi s = x.step(a, g * kSteps + u);
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
  load_sums<A>(scratch.sums, i, block == 0, acc);
  for (int a = 0; a < A; ++a) {
    for (int r = 0; r < R; ++r)
      acc[r][a] = super_end<F>(scratch.head[r], total[r][a], x.sums(a), x.scale(a), acc[r][a]);
  }
  store_sums<A>(acc, scratch.sums, i);
}

/// Group `number` of W rows, unscaled, against A activations from the first_a-th of `starts` on; `steps` and
/// `first_step` are where the group begins.
template <typename F, int A, int kCount>
HK_INLINE void group_dots(const vi* steps, int number, const ActivationSupers& x, const BiasStarts<F, kCount>& starts,
                          int first_a, int first_step, vi (&sums)[A]) {
  constexpr int kSteps = F::kFolded ? F::kSub / 4 : F::kGroup / 4;
  // few chains would wait for each other
  constexpr int kChains = A >= 4 ? 1 : A >= 2 || kSteps < 16 ? 2 : 4;
  // Of many steps against many activations compilers make one chain after the other: keep those of a few together.
  constexpr int kAtOnce = kCount > A && kSteps > 8 ? 8 : kSteps;
  vi part[A][kChains] = {};
  if constexpr (!F::kFolded) {
    for (int a = 0; a < A; ++a) part[a][0] = starts.start(first_a + a, number);
  }
#pragma GCC unroll 1
  for (int first = 0; first < kSteps; first += kAtOnce) {
#pragma GCC unroll 64
    for (int k = 0; k < kAtOnce; ++k) {
      for (int a = 0; a < A; ++a)
        part[a][k % kChains] = dot<F::kWide>(part[a][k % kChains], steps[first + k], x.step(a, first_step + first + k));
    }
  }
  for (int a = 0; a < A; ++a) {
    sums[a] = part[a][0];
    for (int chain = 1; chain < kChains; ++chain) sums[a] += part[a][chain];
  }
}

/// Sub-block c of a format with a scale for each half of a lane.
template <typename F, int A>
HK_INLINE void half_dots(const vi* steps, int c, vi scales, const ActivationSupers& x, vi (&total)[A]) {
  constexpr int kSteps = F::kSub / 4, kChains = A >= 4 ? 1 : A >= 2 ? 2 : 4;
  vi part[A][kChains] = {};
#pragma GCC unroll 8
  for (int u = 0; u < kSteps; ++u) {
    for (int a = 0; a < A; ++a)
      part[a][u % kChains] = dot_s16(part[a][u % kChains], F::pairs(steps[u], x.step(a, c * kSteps + u)), scales);
  }
  for (int a = 0; a < A; ++a) {
    for (int chain = 0; chain < kChains; ++chain) total[a] += part[a][chain];
  }
}
/// What takes the bias off the sum of such a format.
template <typename F>
HK_INLINE vi half_bias(const typename F::Head& head, const std::uint8_t* sums) {
  vi sum{};
  for (int g = 0; g < 8; ++g) sum = dot_s16(sum, head.scales[g], set_i(load32(sums + 2 * kSumsOf16 + 4 * g)));
  return sum * -F::kBias;
}

/// The groups of sub-block c against kGroups times A activations.
template <typename F, int A, int kGroups>
HK_INLINE void sub_dots(const vi* steps, int c, const typename F::Head& head, const ActivationSupers* x,
                        const BiasStarts<F, kGroups * A>& starts, vi (&total)[kGroups][A]) {
  constexpr int kSubSteps = F::kSub / 4, kGroupSteps = F::kFolded ? kSubSteps : F::kGroup / 4;
  constexpr int kSubGroups = kSubSteps / kGroupSteps, kTogether = F::kPaired ? 2 : 1;
  if constexpr (F::kHalves) {
    for (int group = 0; group < kGroups; ++group) half_dots<F, A>(steps, c, head.scales[c], x[group], total[group]);
    return;
  }
  for (int g = 0; g < kSubGroups; g += kTogether) {
    const int number = c * kSubGroups + g;
    for (int group = 0; group < kGroups; ++group) {
      vi sums[kTogether][A];
      for (int k = 0; k < kTogether; ++k)
        group_dots<F, A>(steps + (g + k) * kGroupSteps, number + k, x[group], starts, group * A,
                         c * kSubSteps + (g + k) * kGroupSteps, sums[k]);
      for (int a = 0; a < A; ++a) {
        if constexpr (F::kPaired) {
          total[group][a] = dot_s16(total[group][a], join_words(sums[0][a], sums[1][a]), head.scales[number / 2]);
        } else if constexpr (F::kFolded) {
          total[group][a] += sums[0][a];
        } else {
          total[group][a] += sums[0][a] * head.scales[number];
        }
      }
    }
  }
}

/// A panel against kGroups * A activations at most: sub-blocks go from memory through registers into the sums.
template <typename F, int A, int kGroups>
HK_NOINLINE void super_stream(const Panel& panel, const MatmulArgs& args, const ActivationLayout& layout) {
  constexpr int kSubs = 256 / F::kSub, kSubSteps = F::kSub / 4;
  const std::size_t blocks = args.cols / 256;
  const std::size_t second = args.n - A;  // groups may overlap
  vf sums[kGroups][R][A] = {};
  alignas(64) std::uint8_t ordered[kGroups * A][256];
  SuperUnit<F> packed;
  BiasStarts<F, kGroups * A> starts;
  WindowAhead<F::kBytes> ahead(panel, args, blocks * F::kBytes);
  for (std::size_t block = 0; block < blocks; ++block) {
    ahead.template unit<R * kSubs>(block);
    ActivationSupers x[2] = {{args, layout, 0, block}, {args, layout, second, block}};
    if constexpr (F::kReordered) {
      for (int i = 0; i < kGroups * A; ++i) {
        const std::uint8_t* codes = x[i / A].codes(i % A);
        for (int k = 0; k < 256; k += 4 * W) store_i(ordered[i] + k, F::reorder(load_i(codes + k)));
      }
      for (int group = 0; group < kGroups; ++group) x[group].use_codes(ordered[group * A]);
    }
    for (int i = 0; i < kGroups * A; ++i) starts.set(i, x[i / A].sums(i % A));
#pragma GCC unroll 1
    for (int r = 0; r < R; ++r) {
      packed.load(panel.rows + r * W, block);
      const typename F::Head& head = packed.head;
      vi total[kGroups][A];
      for (int group = 0; group < kGroups; ++group) {
        for (int a = 0; a < A; ++a) total[group][a] = F::kFolded ? starts.start(group * A + a, 0) : vi{};
      }
#pragma GCC unroll 1
      for (int c = 0; c < kSubs; ++c) {
        ahead.part();
        vi steps[kSubSteps];
        F::sub(packed.words, c, head, steps);
        sub_dots<F, A, kGroups>(steps, c, head, x, starts, total);
      }
      for (int group = 0; group < kGroups; ++group) {
        for (int a = 0; a < A; ++a) {
          if constexpr (F::kHalves) total[group][a] += half_bias<F>(head, x[group].sums(a));
          sums[group][r][a] =
              super_end<F>(head, total[group][a], x[group].sums(a), x[group].scale(a), sums[group][r][a]);
        }
      }
    }
  }
  store_groups<A, kGroups>(panel, sums, second);
}

/// A panel against many activations.
template <typename F, int kMost>
HK_NOINLINE void super_tiles(const Panel& panel, const MatmulArgs& args, const ActivationLayout& layout,
                             std::size_t first_activation, std::size_t n, SuperScratch<F>& scratch) {
  constexpr int kSubs = 256 / F::kSub, kSubSteps = F::kSub / 4;
  const std::size_t blocks = args.cols / 256;
  SuperUnit<F> packed;
  WindowAhead<F::kBytes> ahead(panel, args, blocks * F::kBytes);
  for (std::size_t block = 0; block < blocks; ++block) {
    ahead.template unit<R * kSubs>(block);
#pragma GCC unroll 1
    for (int r = 0; r < R; ++r) {
      packed.load(panel.rows + r * W, block);
      scratch.head[r] = packed.head;
#pragma GCC unroll 1
      for (int c = 0; c < kSubs; ++c) {
        ahead.part();
        vi steps[kSubSteps];
        F::sub(packed.words, c, packed.head, steps);
        if constexpr (F::kReordered) F::restore(steps);
        for (int u = 0; u < kSubSteps; ++u) scratch.steps[c * kSubSteps + u][r] = steps[u];
      }
    }
    for_tiles<kMaxSingleA, kMost>(n, [&]<int A>(std::size_t i) HK_LAMBDA_INLINE {
      if (block + 1 == blocks) ask_for_results<A>(panel, first_activation + i);
      super_tile<F, A>(scratch, args, layout, block, first_activation, i);
    });
  }
  if (blocks == 0) return store_zeros(panel, first_activation, n);
  for (std::size_t i = 0; i < n; ++i) store_results(panel, first_activation + i, scratch.sums.of[i]);
}

/// S: the unpacker for few activations, when another one than F is better there; kMost: how many are few.
template <typename F, typename S = F, int kMost = kStreamedA>
void matmul_super(const MatmulArgs& args) {
  const ActivationLayout layout = activation_layout(ActivationFormat::kQ8x256, args.cols);
  for_panels<kMost, SuperScratch<F>>(
      args,
      [&]<int A, int kGroups>(const Panel& panel)
          HK_LAMBDA_INLINE { super_stream<S, A, kGroups>(panel, args, layout); },
      [&](const Panel& panel, std::size_t first, std::size_t n, SuperScratch<F>& scratch)
          HK_LAMBDA_INLINE { super_tiles<F, kMost>(panel, args, layout, first, n, scratch); });
}

}  // namespace
}  // namespace hk::kernels
