// Quantizers of the FP4 formats: mxfp4 with one power-of-two scale per 32, nvfp4 with one E4M3 scale per 16.
#include "kernels/quant/blocks.h"
#include "kernels/quant/codebooks.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/encode_support.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// Code with the smallest |value * scale - x|; the lowest of equals.
unsigned nearest_e2m1(float x, float scale) {
  unsigned best = 0;
  float smallest = std::fabs(static_cast<float>(kE2M1Values[0]) * scale - x);
  for (unsigned code = 1; code < 16; ++code) {
    const float error = std::fabs(static_cast<float>(kE2M1Values[code]) * scale - x);
    if (error < smallest) {
      smallest = error;
      best = code;
    }
  }
  return best;
}

template <unsigned Bytes>
void pack_e2m1(const float* x, float scale, std::uint8_t* qs) {
  for (unsigned j = 0; j < Bytes; ++j)
    qs[j] = static_cast<std::uint8_t>(nearest_e2m1(x[j], scale) | (nearest_e2m1(x[j + Bytes], scale) << 4));
}

/// E8M0 scale for a largest magnitude. The logarithm is rounded to f32 before its floor is taken, as in the reference:
/// magnitudes a few units below a power of two count as that power. Scales that do not exist are clamped.
std::uint8_t e8m0_for(float magnitude) {
  if (!(magnitude > 0.0f)) return 0;
  const float log = static_cast<float>(std::log2(static_cast<double>(magnitude)));
  constexpr int kBias = 127;
  constexpr int kLargestExponent = 2;  // of E2M1: its largest values are 4 and 6
  return static_cast<std::uint8_t>(truncate(std::floor(log) - kLargestExponent + kBias, 0, 254));
}

/// Unsigned E4M3, bias 7, as nvfp4 files have it. Ties round up, 248 and more is 448, and a subnormal never becomes the
/// smallest normal: properties of the reference that are kept for identical bytes.
std::uint8_t encode_ue4m3(float value) {
  constexpr std::uint8_t kLargest = 0x7E;
  if (!(value > 0.0f)) return 0;
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, value);
  int exponent = static_cast<int>(bits >> 23) - 127 + 7;
  if (exponent <= 0) return static_cast<std::uint8_t>(truncate(value * 512.0f + 0.5f, 0, 7));
  int mantissa = static_cast<int>(((bits >> 20) & 7u) + ((bits >> 19) & 1u));
  if (mantissa > 7) {
    mantissa = 0;
    ++exponent;
  }
  return exponent >= 15 ? kLargest : static_cast<std::uint8_t>((exponent << 3) | mantissa);
}

void mxfp4(const float* x, BlockMXFP4& block) {
  block.e = e8m0_for(largest_magnitude(x, 32));
  pack_e2m1<16>(x, e8m0_half_to_f32(block.e), block.qs);
}

void nvfp4(const float* x, BlockNVFP4& block) {
  for (unsigned s = 0; s < 4; ++s) {
    const float* group = x + 16 * s;
    block.d[s] = encode_ue4m3(largest_magnitude(group, 16) / 6.0f);
    pack_e2m1<8>(group, ue4m3_half_to_f32(block.d[s]), block.qs + 8 * s);
  }
}

}  // namespace

void encode_mxfp4(const float* values, void* blocks, std::size_t n) {
  encode_each<BlockMXFP4, mxfp4>(values, blocks, n);
}
void encode_nvfp4(const float* values, void* blocks, std::size_t n) {
  encode_each<BlockNVFP4, nvfp4>(values, blocks, n);
}

}  // namespace hk::kernels
