// Attention over pages of q8_0: integer dot products for scores and for weighted values.
//
// Part of the level sources (see attention_tile.h). Queries are quantized like activations, 32 dimensions under a
// scale. The weight of a position times the scale of its value becomes a whole number of 14 bits under one step for the
// page, in two digits of 7 bits, so that two byte products with the codes of values make an exact sum: a page's error
// is half a step a position, far below what the codes themselves have lost. All integers are the same on every level.
#pragma once

#include "kernels/isa/attention_tile.h"
#include "kernels/isa/kv_load.h"
#include "kernels/isa/quantize.h"

namespace hk::kernels {
namespace {

// Queries that share a vector of codes, and integer sums in registers at a time. They meet a cache line of codes, which
// is one key group or 16 dimensions of four positions: scores hold as many float sums beside the integers, values have
// a sum for each digit.
#if defined(HK_ISA_AVX512)
inline constexpr int kCodeTile = 8, kDigitSums = 16;
#elif defined(HK_ISA_AVX2)
inline constexpr int kCodeTile = 2, kDigitSums = 8;
#elif defined(HK_ISA_NEON)
inline constexpr int kCodeTile = 2, kDigitSums = 16;
#else
inline constexpr int kCodeTile = 1, kDigitSums = 4;
#endif

inline constexpr int kDigitBits = 7;
inline constexpr float kMostWeight = 16383.0f;  // two digits

/// The parts of the scratch memory behind the scores.
struct CodeScratch {
  std::int8_t* codes;    ///< [n][blocks * 32]
  float* scales;         ///< [n][blocks]
  std::int32_t* starts;  ///< [n][blocks]: what integer sums begin with, to take kWideBias off again
  std::int8_t* digits;   ///< [n][2][kKvPage]: upper digits, lower digits
  float* steps;          ///< [n]
  std::size_t blocks;
};
HK_INLINE CodeScratch code_scratch(const AttendPageArgs& args) {
  CodeScratch s;
  s.blocks = (args.head_size + kKeyBlock - 1) / kKeyBlock;
  auto* at = static_cast<std::uint8_t*>(args.scratch) + kQueryChunk * kKvPage * sizeof(float);
  s.digits = reinterpret_cast<std::int8_t*>(at);
  s.codes = s.digits + kQueryChunk * 2 * kKvPage;
  s.scales = reinterpret_cast<float*>(s.codes + kQueryChunk * s.blocks * kKeyBlock);
  s.starts = reinterpret_cast<std::int32_t*>(s.scales + kQueryChunk * s.blocks);
  s.steps = reinterpret_cast<float*>(s.starts + kQueryChunk * s.blocks);
  return s;
}

/// `n` values, then zeros up to `size`.
HK_INLINE void copy_padded(float* to, const float* from, std::size_t n, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) to[i] = i < n ? from[i] : 0.0f;
}

HK_INLINE void quantize_query(const AttendPageArgs& args, const CodeScratch& s, std::size_t query) {
  for (std::size_t b = 0; b < s.blocks; ++b) {
    const float* x = args.q[query] + b * kKeyBlock;
    alignas(64) float padded[kKeyBlock];
    if ((b + 1) * kKeyBlock > args.head_size) {
      copy_padded(padded, x, args.head_size - b * kKeyBlock, kKeyBlock);
      x = padded;
    }
    std::int8_t* codes = s.codes + (query * s.blocks + b) * kKeyBlock;
    s.scales[query * s.blocks + b] = quantize_group(x, kKeyBlock, codes);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < kKeyBlock; ++i) sum += codes[i];
    s.starts[query * s.blocks + b] = -kWideBias * sum;
  }
}

/// Scores of N queries against a key group, `done` bytes into its span.
template <int N>
HK_INLINE void score_code_group(const AttendPageArgs& args, const CodeScratch& s, std::size_t query, std::size_t group,
                                const Ahead& ahead, std::size_t done, float* scores) {
  const auto* keys = static_cast<const std::uint8_t*>(args.k) + group * key_group_bytes(args.head_size);
  const std::uint8_t* key_scales = keys + key_code_bytes(args.head_size);
  const std::int8_t* q = s.codes + query * s.blocks * kKeyBlock;
  const float* q_scales = s.scales + query * s.blocks;
  const std::int32_t* starts = s.starts + query * s.blocks;
  const std::size_t steps = (args.head_size + kDotBytes - 1) / kDotBytes;
  constexpr std::size_t kSteps = kKeyBlock / kDotBytes, kBytes = kKeyGroup * kDotBytes;
  vf sum[N][kParts] = {};
  for (std::size_t b = 0; b < s.blocks; ++b) {
    vi dots[N][kParts];
    for (int i = 0; i < N; ++i) {
      for (int part = 0; part < kParts; ++part) dots[i][part] = set_i(starts[i * s.blocks + b]);
    }
    const std::size_t end = steps < (b + 1) * kSteps ? steps : (b + 1) * kSteps;
    for (std::size_t step = b * kSteps; step < end; ++step) {
      ahead.ask(done + step * kBytes, kBytes);
      vi k[kParts];
      for (int part = 0; part < kParts; ++part) k[part] = wide(load_i(keys + step * kBytes + part * W * kDotBytes));
      for (int i = 0; i < N; ++i) {
        const vi x = set_i(load32(q + i * s.blocks * kKeyBlock + step * kDotBytes));
        for (int part = 0; part < kParts; ++part) dots[i][part] = dot_wide(dots[i][part], k[part], x);
      }
    }
    for (int part = 0; part < kParts; ++part) {
      const vf scale = load_bf16(key_scales + (b * kKeyGroup + part * W) * 2);
      for (int i = 0; i < N; ++i)
        sum[i][part] = fma(to_float(dots[i][part]), scale * q_scales[i * s.blocks + b], sum[i][part]);
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int part = 0; part < kParts; ++part)
      store_f(scores + i * kKvPage + group * kKeyGroup + part * W, sum[i][part]);
  }
}

template <int N>
void score_code_tile(const AttendPageArgs& args, const CodeScratch& s, std::size_t query, Part part, const Ahead& ahead,
                     float* scores) {
  const std::size_t last = round_up(part.end, kKeyGroup) / kKeyGroup;
  std::size_t done = 0;
  for (std::size_t group = part.begin / kKeyGroup; group < last; ++group, done += key_group_bytes(args.head_size))
    score_code_group<N>(args, s, query, group, ahead, done, scores);
}

/// Weights of the positions from..to, multiplied by the scales of values, as digits; zeros in the rest of their quads.
HK_INLINE void split_weights(const AttendPageArgs& args, const CodeScratch& s, std::size_t query, std::size_t block,
                             Seen seen, float* weights) {
  const std::size_t from = seen.group_begin(), to = seen.group_end();
  const auto* scales = static_cast<const std::uint8_t*>(args.v) + kKvPage * args.value_size + block * kKvPage * 2;
  alignas(64) float products[kKvPage];
  vf largest{}, poison{};
  for (std::size_t j = from; j < to; j += W) {
    const vf weight = load_f(weights + j);
    // what nobody sees may hold anything
    const vf product = select(weight == 0.0f, vf{}, weight * load_bf16(scales + 2 * j));
    store_f(products + j, product);
    largest = max_f(product, largest);
    poison += product * 0.0f;
  }
  const float most = fold_lanes(largest, max_f)[0], poisoned = fold_sum(poison);
  const bool zero = !(most > kSmallestPeak);
  const float inverse = zero || poisoned != 0.0f ? 0.0f : kMostWeight / most;
  s.steps[query] = (zero ? 0.0f : most / kMostWeight) + poisoned;
  std::int8_t* upper = s.digits + query * 2 * kKvPage;
  for (std::size_t j = from; j < to; j += W) {
    const vf wide = load_f(products + j) * inverse;
    const vi weight = __builtin_convertvector(round_even(select(wide < kMostWeight + 0.5f, wide, vf{})), vi);
    store_codes(upper + j, shr(weight, kDigitBits));
    store_codes(upper + kKvPage + j, weight & ((1 << kDigitBits) - 1));
  }
}

HK_INLINE vi load_codes_first(const std::uint8_t* p, int count) {
  return as_i(load_first(reinterpret_cast<const float*>(p), count));
}

/// Adds to the integers in `acc` the weight * value of the positions begin..end, for N queries and C vectors of
/// dimensions; of the last vector `count` lanes. Begins with 0 when `first`, ends with floats when `last`.
template <int N, int C>
HK_INLINE void weigh_codes(const AttendPageArgs& args, const CodeScratch& s, std::size_t query, Part part,
                           std::size_t dim, int count, const Ahead& ahead) {
  vi upper[N][C] = {}, lower[N][C] = {};
  const std::int8_t* digits = s.digits + query * 2 * kKvPage;
  for (std::size_t j = part.begin; j < part.end; j += kDotBytes) {
    const std::uint8_t* codes = static_cast<const std::uint8_t*>(args.v) + j * args.value_size + dim * kDotBytes;
    ahead.ask((j - part.begin) * args.value_size + dim * kDotBytes, C * W * kDotBytes);
    vi v[C];
    for (int c = 0; c < C; ++c) {
      const std::uint8_t* p = codes + static_cast<std::size_t>(c * W) * kDotBytes;
      v[c] = c + 1 == C && count < W ? load_codes_first(p, count) : load_i(p);
    }
    for (int i = 0; i < N; ++i) {
      const vi high = set_i(load32(digits + i * 2 * kKvPage + j));
      const vi low = set_i(load32(digits + (i * 2 + 1) * kKvPage + j));
      for (int c = 0; c < C; ++c) {
        upper[i][c] = dot_u8s8(upper[i][c], high, v[c]);
        lower[i][c] = dot_u8s8(lower[i][c], low, v[c]);
      }
    }
  }
  for (int i = 0; i < N; ++i) {
    for (int c = 0; c < C; ++c) {
      const int lanes = c + 1 == C ? count : W;
      float* acc = args.acc[query + static_cast<std::size_t>(i)] + dim + c * W;
      // of a page at most 256 * 16383 * 127: a whole number of 30 bits
      vi total = (upper[i][c] << kDigitBits) + lower[i][c];
      if (!part.first) total = total + as_i(load_some(acc, lanes));
      store_some(acc, part.last ? to_float(total) * s.steps[query + static_cast<std::size_t>(i)] : as_f(total), lanes);
    }
  }
}

template <int N>
void weigh_code_tile(const AttendPageArgs& args, const CodeScratch& s, std::size_t query, Part part, std::size_t dim,
                     std::size_t end, const Ahead& ahead) {
  constexpr int C = power_below(kDigitSums / (2 * N) < 16 / W ? kDigitSums / (2 * N) : 16 / W);
  for (; dim + C * W <= end; dim += C * W) weigh_codes<N, C>(args, s, query, part, dim, W, ahead);
  for (; dim + W <= end; dim += W) weigh_codes<N, 1>(args, s, query, part, dim, W, ahead);
  if (dim < end) weigh_codes<N, 1>(args, s, query, part, dim, static_cast<int>(end - dim), ahead);
}

/// The queries of one chunk; `args` holds nothing else.
void attend_codes(const AttendPageArgs& args) {
  auto* scores = static_cast<float*>(args.scratch);
  const CodeScratch s = code_scratch(args);
  if (!args.again) {
    for (std::size_t i = 0; i < args.n; ++i) quantize_query(args, s, i);
  }
  weigh_positions<kCodeTile>(args, kSpan / kKeyGroup * key_group_bytes(args.head_size), scores,
                             [&](auto tile, std::size_t i, Part part, float* rows, const Ahead& ahead)
                                 HK_LAMBDA_INLINE { score_code_tile<tile.kValue>(args, s, i, part, ahead, rows); });
  clear_unseeing(args);
  for (std::size_t block = 0; block * kValueBlock < args.value_size; ++block) {
    const std::size_t dim = block * kValueBlock;
    const std::size_t end = args.value_size < dim + kValueBlock ? args.value_size : dim + kValueBlock;
    for_tiles<kCodeTile>(args.n, [&](auto tile, std::size_t i) HK_LAMBDA_INLINE {
      const Seen seen = seen_by(args, i, tile.kValue);
      for (std::size_t query = i; query < i + tile.kValue; ++query)
        split_weights(args, s, query, block, seen, scores + query * kKvPage);
    });
    const void* next = end == args.value_size ? args.next : static_cast<const std::uint8_t*>(args.v) + end * kDotBytes;
    for_spans<kCodeTile>(args, args.v, kSpan * args.value_size, next,
                         [&](auto tile, std::size_t i, Part part, const Ahead& ahead) HK_LAMBDA_INLINE {
                           part.begin = part.begin / kDotBytes * kDotBytes;
                           weigh_code_tile<tile.kValue>(args, s, i, part, dim, end, ahead);
                         });
  }
}

}  // namespace
}  // namespace hk::kernels
