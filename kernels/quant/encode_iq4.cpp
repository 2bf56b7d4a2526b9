// Quantizers of iq4_nl and iq4_xs: a search for the scale that fits 32 values to the nonlinear table best.
#include <cstring>

#include "kernels/quant/blocks.h"
#include "kernels/quant/codebooks.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/encode_support.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

constexpr unsigned kGroup = 32;
/// Groups whose values are all smaller count as zero.
constexpr float kTiny = 1e-15f;

/// Codes of the table values nearest to inverse_scale * x; the upper of two equally near, 0 for NaN. A code is the
/// number of midpoints between neighbouring table values that the value reaches, counted one midpoint after the other
/// so that the inner loop has no branch.
void nearest_codes(const float* x, float inverse_scale, std::int32_t* codes) {
  float scaled[kGroup];
  for (unsigned i = 0; i < kGroup; ++i) {
    scaled[i] = inverse_scale * x[i];
    codes[i] = 0;
  }
  for (unsigned k = 0; k < 15; ++k) {
    const float midpoint = static_cast<float>(kIQ4NLValues[k] + kIQ4NLValues[k + 1]) * 0.5f;
    for (unsigned i = 0; i < kGroup; ++i) codes[i] += scaled[i] >= midpoint ? 1 : 0;
  }
}

/// Least-squares scale of the best trial, weights x^2.
float fit_scale(const float* x) {
  constexpr int kTrials = 7;  // to each side
  const float largest = first_largest(x, kGroup);
  if (std::fabs(largest) < kTiny) return 0.0f;
  const auto first = static_cast<float>(kIQ4NLValues[0]);
  float best_scale = 0.0f;
  float best_score = 0.0f;
  const auto attempt = [&](float inverse_scale) {
    std::int32_t codes[kGroup];
    nearest_codes(x, inverse_scale, codes);
    float product = 0.0f;
    float square = 0.0f;
    for (unsigned i = 0; i < kGroup; ++i) {
      const auto value = static_cast<float>(kIQ4NLValues[codes[i]]);
      const float w = x[i] * x[i];
      product += w * value * x[i];
      square += w * value * value;
    }
    if (!(square > 0.0f && product * product > best_score * square)) return;
    best_scale = product / square;
    best_score = best_scale * product;
  };
  attempt(-first / largest);
  for (int k = -kTrials; k <= kTrials; ++k) attempt((static_cast<float>(k) + first) / largest);
  return best_scale;
}

void pack_codes(const float* x, float inverse_scale, std::uint8_t* qs) {
  std::int32_t codes[kGroup];
  nearest_codes(x, inverse_scale, codes);
  for (unsigned j = 0; j < 16; ++j) qs[j] = static_cast<std::uint8_t>(codes[j] | (codes[j + 16] << 4));
}

void iq4_nl(const float* x, BlockIQ4_NL& block) {
  const float d = fit_scale(x);
  block.d = f32_to_f16(d);
  pack_codes(x, inverse(d), block.qs);
}

void iq4_xs(const float* x, BlockIQ4_XS& block) {
  float scales[8];
  for (unsigned g = 0; g < 8; ++g) scales[g] = fit_scale(x + kGroup * g);
  const float d = -first_largest(scales, 8) / 32.0f;
  const float id = inverse(d);
  block.d = f32_to_f16(d);
  std::memset(block.scales_l, 0, sizeof(block.scales_l));
  unsigned scales_h = 0;
  for (unsigned g = 0; g < 8; ++g) {
    const int code = id != 0.0f ? round_even(id * scales[g], -32, 31) : 0;
    pack_codes(x + kGroup * g, inverse(d * static_cast<float>(code)), block.qs + 16 * g);
    const auto biased = static_cast<unsigned>(code + 32);
    block.scales_l[g / 2] = static_cast<std::uint8_t>(block.scales_l[g / 2] | ((biased & 15u) << (4 * (g % 2))));
    scales_h |= (biased >> 4) << (2 * g);
  }
  block.scales_h = static_cast<std::uint16_t>(scales_h);
}

}  // namespace

void encode_iq4_nl(const float* values, void* blocks, std::size_t n) {
  encode_each<BlockIQ4_NL, iq4_nl>(values, blocks, n);
}
void encode_iq4_xs(const float* values, void* blocks, std::size_t n) {
  encode_each<BlockIQ4_XS, iq4_xs>(values, blocks, n);
}

}  // namespace hk::kernels
