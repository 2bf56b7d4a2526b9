// Quantizers of the K-quants with a scale and a min per group: q2_k, q4_k, q5_k.
//
// Each group is fitted by a weighted search over trial scales; the group scales and mins are then quantized themselves,
// and the elements are quantized once more with what a reader will see.
#include <cstring>

#include "kernels/quant/blocks.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/encode_support.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

constexpr unsigned kSuper = 256;

/// How one format searches. Trial inverse scales are (first + step * k + top) / range, k = 0..steps.
struct Search {
  unsigned group;  ///< elements a group
  int top;         ///< largest element code
  int scale_top;   ///< largest code of a group scale or min
  float first;
  float step;
  int steps;
  bool absolute_error;  ///< q2_k: weights |x| and absolute residuals; else weights rms + |x| and squared residuals
};
constexpr Search kSearchQ2{16, 3, 15, -0.5f, 0.1f, 15, true};
constexpr Search kSearchQ4{32, 15, 63, -1.0f, 0.1f, 20, false};
constexpr Search kSearchQ5{32, 31, 63, -0.5f, 0.1f, 15, false};
constexpr unsigned kMaxGroup = 32;
constexpr unsigned kMaxGroups = 16;

/// value = scale * code + low, low <= 0.
struct Fit {
  float scale = 0.0f;
  float low = 0.0f;
};

void group_weights(const Search& search, const float* x, float* weights) {
  float base = 0.0f;
  if (!search.absolute_error) {
    float squares = 0.0f;
    for (unsigned i = 0; i < search.group; ++i) squares += x[i] * x[i];
    base = std::sqrt(squares / static_cast<float>(search.group));
  }
  for (unsigned i = 0; i < search.group; ++i) weights[i] = base + std::fabs(x[i]);
}

float fit_error(const Search& search, const float* x, const float* weights, const int* codes, const Fit& fit) {
  float error = 0.0f;
  for (unsigned i = 0; i < search.group; ++i) {
    const float residual = fit.scale * static_cast<float>(codes[i]) + fit.low - x[i];
    error += weights[i] * (search.absolute_error ? std::fabs(residual) : residual * residual);
  }
  return error;
}

/// Weighted least squares for scale and low, given codes. False when the codes do not determine them.
bool solve(const Search& search, const float* x, const float* weights, const int* codes, Fit* fit) {
  float sum_w = 0.0f;
  float sum_x = 0.0f;
  float sum_c = 0.0f;
  float sum_cc = 0.0f;
  float sum_cx = 0.0f;
  for (unsigned i = 0; i < search.group; ++i) {
    const auto code = static_cast<float>(codes[i]);
    const float w = weights[i];
    sum_w += w;
    sum_x += w * x[i];
    sum_c += w * code;
    sum_cc += w * code * code;
    sum_cx += w * code * x[i];
  }
  const float determinant = sum_w * sum_cc - sum_c * sum_c;
  if (!(determinant > 0.0f)) return false;
  fit->scale = (sum_w * sum_cx - sum_x * sum_c) / determinant;
  fit->low = (sum_cc * sum_x - sum_c * sum_cx) / determinant;
  if (fit->low > 0.0f) {  // mins are stored negated and without a sign
    fit->low = 0.0f;
    fit->scale = sum_cx / sum_cc;
  }
  return true;
}

/// Best scale and low of one group with their codes.
Fit fit_group(const Search& search, const float* x, int* codes) {
  float weights[kMaxGroup];
  group_weights(search, x, weights);
  float low = 0.0f;
  float high = x[0];
  for (unsigned i = 0; i < search.group; ++i) {
    low = x[i] < low ? x[i] : low;
    high = x[i] > high ? x[i] : high;
  }
  if (!(high > low)) {
    std::memset(codes, 0, search.group * sizeof(int));
    return {0.0f, low};
  }
  const auto top = static_cast<float>(search.top);
  const auto assign = [&](float inverse_scale, float offset, int* result) {
    for (unsigned i = 0; i < search.group; ++i) result[i] = round_even(inverse_scale * (x[i] - offset), 0, search.top);
  };
  const float start = top / (high - low);
  assign(start, low, codes);
  Fit best{1.0f / start, low};
  float best_error = fit_error(search, x, weights, codes, best);
  for (int k = 0; k <= search.steps; ++k) {
    int trial_codes[kMaxGroup];
    assign((search.first + search.step * static_cast<float>(k) + top) / (high - best.low), best.low, trial_codes);
    Fit trial;
    if (!solve(search, x, weights, trial_codes, &trial)) continue;
    const float error = fit_error(search, x, weights, trial_codes, trial);
    if (error < best_error) {
      best_error = error;
      best = trial;
      std::memcpy(codes, trial_codes, search.group * sizeof(int));
    }
  }
  return best;
}

/// A super-block before packing.
struct SuperBlock {
  std::uint16_t d;
  std::uint16_t dmin;
  int scales[kMaxGroups];
  int mins[kMaxGroups];
  int codes[kSuper];
};

void fit_super_block(const Search& search, const float* x, SuperBlock* result) {
  const unsigned groups = kSuper / search.group;
  Fit fits[kMaxGroups];
  float largest_scale = 0.0f;
  float largest_min = 0.0f;
  for (unsigned g = 0; g < groups; ++g) {
    fits[g] = fit_group(search, x + g * search.group, result->codes + g * search.group);
    largest_scale = fits[g].scale > largest_scale ? fits[g].scale : largest_scale;
    largest_min = -fits[g].low > largest_min ? -fits[g].low : largest_min;
  }
  const auto scale_top = static_cast<float>(search.scale_top);
  const float to_scale_code = largest_scale > 0.0f ? scale_top / largest_scale : 0.0f;
  const float to_min_code = largest_min > 0.0f ? scale_top / largest_min : 0.0f;
  result->d = f32_to_f16(largest_scale / scale_top);
  result->dmin = f32_to_f16(largest_min / scale_top);
  const float d = f16_to_f32(result->d);
  const float dmin = f16_to_f32(result->dmin);
  for (unsigned g = 0; g < groups; ++g) {
    result->scales[g] = round_even(to_scale_code * fits[g].scale, 0, search.scale_top);
    result->mins[g] = round_even(to_min_code * -fits[g].low, 0, search.scale_top);
    const float scale = d * static_cast<float>(result->scales[g]);
    const float min = dmin * static_cast<float>(result->mins[g]);
    if (scale == 0.0f) continue;
    for (unsigned i = g * search.group; i < (g + 1) * search.group; ++i)
      result->codes[i] = round_even((x[i] + min) / scale, 0, search.top);
  }
}

/// Inverse of unpack_scale_min.
void pack_scales_mins(const SuperBlock& from, std::uint8_t* bytes) {
  for (unsigned g = 0; g < 4; ++g) {
    bytes[g] = static_cast<std::uint8_t>(from.scales[g] | ((from.scales[g + 4] >> 4) << 6));
    bytes[g + 4] = static_cast<std::uint8_t>(from.mins[g] | ((from.mins[g + 4] >> 4) << 6));
    bytes[g + 8] = static_cast<std::uint8_t>((from.scales[g + 4] & 15) | ((from.mins[g + 4] & 15) << 4));
  }
}

/// Low four bits: even groups of 32 in low nibbles, odd groups in high nibbles.
void pack_four_bits(const int* codes, std::uint8_t* qs) {
  for (unsigned c = 0; c < 4; ++c)
    for (unsigned l = 0; l < 32; ++l)
      qs[32 * c + l] = static_cast<std::uint8_t>((codes[64 * c + l] & 15) | ((codes[64 * c + 32 + l] & 15) << 4));
}

void q2_k(const float* x, BlockQ2_K& block) {
  SuperBlock fitted;
  fit_super_block(kSearchQ2, x, &fitted);
  block.d = fitted.d;
  block.dmin = fitted.dmin;
  for (unsigned g = 0; g < 16; ++g)
    block.scales[g] = static_cast<std::uint8_t>(fitted.scales[g] | (fitted.mins[g] << 4));
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned l = 0; l < 32; ++l) {
      const int* from = fitted.codes + 128 * half + l;
      block.qs[32 * half + l] =
          static_cast<std::uint8_t>(from[0] | (from[32] << 2) | (from[64] << 4) | (from[96] << 6));
    }
}

void q4_k(const float* x, BlockQ4_K& block) {
  SuperBlock fitted;
  fit_super_block(kSearchQ4, x, &fitted);
  block.d = fitted.d;
  block.dmin = fitted.dmin;
  pack_scales_mins(fitted, block.scales);
  pack_four_bits(fitted.codes, block.qs);
}

void q5_k(const float* x, BlockQ5_K& block) {
  SuperBlock fitted;
  fit_super_block(kSearchQ5, x, &fitted);
  block.d = fitted.d;
  block.dmin = fitted.dmin;
  pack_scales_mins(fitted, block.scales);
  pack_four_bits(fitted.codes, block.qs);
  for (unsigned l = 0; l < 32; ++l) {
    unsigned bits = 0;
    for (unsigned g = 0; g < 8; ++g) bits |= static_cast<unsigned>((fitted.codes[32 * g + l] >> 4) & 1) << g;
    block.qh[l] = static_cast<std::uint8_t>(bits);
  }
}

}  // namespace

void encode_q2_k(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ2_K, q2_k>(values, blocks, n); }
void encode_q4_k(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ4_K, q4_k>(values, blocks, n); }
void encode_q5_k(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ5_K, q5_k>(values, blocks, n); }

}  // namespace hk::kernels
