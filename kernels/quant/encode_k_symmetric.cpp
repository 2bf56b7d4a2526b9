// Quantizers of the K-quants with a signed scale per group of 16 and no min: q3_k, q6_k.
#include <cstring>

#include "kernels/quant/blocks.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/encode_support.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

constexpr unsigned kGroup = 16;
constexpr unsigned kGroups = 16;
/// Groups whose values are all smaller count as zero (squares of squares would leave the range of f32). They get the
/// lowest code, a zero byte in the file; their scale is zero, so it decodes to zero all the same.
constexpr float kTiny = 1e-15f;

/// Weighted sums that a least-squares scale comes from, with weights x^2: scale = product / square.
struct Sums {
  float product = 0.0f;  ///< sum of w * x * code
  float square = 0.0f;   ///< sum of w * code^2

  void add(float x, int code) {
    const float w = x * x;
    const auto c = static_cast<float>(code);
    product += w * x * c;
    square += w * c * c;
  }
  float scale() const { return square > 0.0f ? product / square : 0.0f; }
  /// A fit is better when product^2 / square is larger.
  bool better_than(const Sums& other) const {
    return square > 0.0f && product * product * other.square > other.product * other.product * square;
  }
};

/// q3_k: codes -4..3 improved one element at a time until a sweep changes nothing. Returns the scale.
float fit_three_bits(const float* x, int* codes) {
  constexpr int kSweeps = 5;
  const float largest = first_largest(x, kGroup);
  if (std::fabs(largest) < kTiny) {
    for (unsigned i = 0; i < kGroup; ++i) codes[i] = -4;
    return 0.0f;
  }
  Sums sums;
  for (unsigned i = 0; i < kGroup; ++i) {
    codes[i] = round_even(-4.0f / largest * x[i], -4, 3);
    sums.add(x[i], codes[i]);
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool changed = false;
    for (unsigned i = 0; i < kGroup; ++i) {
      const float w = x[i] * x[i];
      const auto code = static_cast<float>(codes[i]);
      Sums others{sums.product - w * x[i] * code, sums.square - w * code * code};
      if (!(others.product > 0.0f)) continue;
      const int candidate = round_even(x[i] * others.square / others.product, -4, 3);
      if (candidate == codes[i]) continue;
      others.add(x[i], candidate);
      if (!others.better_than(sums)) continue;
      codes[i] = candidate;
      sums = others;
      changed = true;
    }
    if (!changed) break;
  }
  return sums.scale();
}

/// q6_k: codes -32..31 for a range of trial scales around the one that maps the largest value to -32. Returns the
/// scale.
float fit_six_bits(const float* x, int* codes) {
  constexpr int kTrials = 9;  // to each side
  constexpr float kTrialStep = 0.1f;
  const float largest = first_largest(x, kGroup);
  if (std::fabs(largest) < kTiny) {
    for (unsigned i = 0; i < kGroup; ++i) codes[i] = -32;
    return 0.0f;
  }
  float best_scale = 0.0f;
  float best_score = 0.0f;  // product^2 / square of the best trial
  const auto attempt = [&](int k) {
    const float inverse_scale = -(32.0f + kTrialStep * static_cast<float>(k)) / largest;
    int trial[kGroup];
    Sums sums;
    for (unsigned i = 0; i < kGroup; ++i) {
      trial[i] = round_even(inverse_scale * x[i], -32, 31);
      sums.add(x[i], trial[i]);
    }
    if (k != 0 && !(sums.product * sums.product > best_score * sums.square)) return;
    best_scale = sums.scale();
    best_score = best_scale * sums.product;
    std::memcpy(codes, trial, sizeof(trial));
  };
  attempt(0);
  for (int k = -kTrials; k <= kTrials; ++k)
    if (k != 0) attempt(k);
  return best_scale;
}

/// Group scales to codes bottom..top, the largest magnitude to `bottom`. Returns the f16 super-block scale.
std::uint16_t quantize_scales(const float* scales, int bottom, int top, int* codes) {
  const float largest = first_largest(scales, kGroups);
  const float k = largest != 0.0f ? static_cast<float>(bottom) / largest : 0.0f;
  for (unsigned g = 0; g < kGroups; ++g) codes[g] = k != 0.0f ? round_even(k * scales[g], bottom, top) : bottom;
  return f32_to_f16(inverse(k));
}

/// Codes once more, with the scales a reader will see; groups without a scale keep theirs.
void requantize(const float* x, std::uint16_t d_bits, const int* scale_codes, int bottom, int top, int* codes) {
  const float d = f16_to_f32(d_bits);
  for (unsigned g = 0; g < kGroups; ++g) {
    const float scale = d * static_cast<float>(scale_codes[g]);
    if (scale == 0.0f) continue;
    for (unsigned i = kGroup * g; i < kGroup * (g + 1); ++i) codes[i] = round_even(x[i] / scale, bottom, top);
  }
}

void q3_k(const float* x, BlockQ3_K& block) {
  float scales[kGroups];
  int scale_codes[kGroups];
  int codes[256];
  for (unsigned g = 0; g < kGroups; ++g) scales[g] = fit_three_bits(x + kGroup * g, codes + kGroup * g);
  block.d = quantize_scales(scales, -32, 31, scale_codes);
  requantize(x, block.d, scale_codes, -4, 3, codes);

  std::memset(block.scales, 0, sizeof(block.scales));
  for (unsigned g = 0; g < kGroups; ++g) {
    const int code = scale_codes[g] + 32;
    block.scales[g % 8] = static_cast<std::uint8_t>(block.scales[g % 8] | ((code & 15) << (g < 8 ? 0 : 4)));
    block.scales[8 + g % 4] = static_cast<std::uint8_t>(block.scales[8 + g % 4] | ((code >> 4) << (2 * (g / 4))));
  }
  std::memset(block.hmask, 0, sizeof(block.hmask));
  std::memset(block.qs, 0, sizeof(block.qs));
  for (unsigned i = 0; i < 256; ++i) {
    const int code = codes[i] + 4;
    const unsigned r = i % 128;
    std::uint8_t& low = block.qs[32 * (i / 128) + r % 32];
    low = static_cast<std::uint8_t>(low | ((code & 3) << (2 * (r / 32))));
    std::uint8_t& high = block.hmask[i % 32];
    high = static_cast<std::uint8_t>(high | ((code >> 2) << (i / 32)));
  }
}

void q6_k(const float* x, BlockQ6_K& block) {
  float scales[kGroups];
  int scale_codes[kGroups];
  int codes[256];
  for (unsigned g = 0; g < kGroups; ++g) scales[g] = fit_six_bits(x + kGroup * g, codes + kGroup * g);
  if (largest_magnitude(scales, kGroups) < kTiny) {
    std::memset(&block, 0, sizeof(block));
    return;
  }
  block.d = quantize_scales(scales, -128, 127, scale_codes);
  requantize(x, block.d, scale_codes, -32, 31, codes);

  for (unsigned g = 0; g < kGroups; ++g) block.scales[g] = static_cast<std::int8_t>(scale_codes[g]);
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned l = 0; l < 32; ++l) {
      int quarter[4];
      for (unsigned k = 0; k < 4; ++k) quarter[k] = codes[128 * half + 32 * k + l] + 32;
      block.ql[64 * half + l] = static_cast<std::uint8_t>((quarter[0] & 15) | ((quarter[2] & 15) << 4));
      block.ql[64 * half + 32 + l] = static_cast<std::uint8_t>((quarter[1] & 15) | ((quarter[3] & 15) << 4));
      block.qh[32 * half + l] = static_cast<std::uint8_t>((quarter[0] >> 4) | ((quarter[1] >> 4) << 2) |
                                                          ((quarter[2] >> 4) << 4) | ((quarter[3] >> 4) << 6));
    }
}

}  // namespace

void encode_q3_k(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ3_K, q3_k>(values, blocks, n); }
void encode_q6_k(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ6_K, q6_k>(values, blocks, n); }

}  // namespace hk::kernels
