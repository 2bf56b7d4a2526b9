// Quantizers of the ternary formats: the largest magnitude is the scale, every value becomes -1, 0 or 1.
#include "kernels/quant/blocks.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/encode_support.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// Digits 0, 1, 2 of 256 values. Returns the scale.
float ternary_digits(const float* x, std::uint8_t* digits) {
  const float d = largest_magnitude(x, 256);
  const float id = inverse(d);
  for (unsigned i = 0; i < 256; ++i) digits[i] = static_cast<std::uint8_t>(1 + round_away(x[i] * id, -1, 1));
  return d;
}

/// The counterpart of the decoder's digit extraction: the number v of five digits (the fifth is 0 where only four are
/// kept) is stored as the fraction v / 243 in 8-bit fixed point, rounded up.
template <unsigned Bytes, unsigned Digits>
void pack_digits(const std::uint8_t* digits, std::uint8_t* bytes) {
  for (unsigned m = 0; m < Bytes; ++m) {
    unsigned v = 0;
    for (unsigned n = 0; n < Digits; ++n) v = 3 * v + digits[Bytes * n + m];
    if (Digits == 4) v *= 3;
    bytes[m] = static_cast<std::uint8_t>((v * 256 + 242) / 243);
  }
}

void tq1_0(const float* x, BlockTQ1_0& block) {
  std::uint8_t digits[256];
  block.d = f32_to_f16(ternary_digits(x, digits));
  pack_digits<32, 5>(digits, block.qs);
  pack_digits<16, 5>(digits + 160, block.qs + 32);
  pack_digits<4, 4>(digits + 240, block.qh);
}

void tq2_0(const float* x, BlockTQ2_0& block) {
  std::uint8_t digits[256];
  block.d = f32_to_f16(ternary_digits(x, digits));
  for (unsigned half = 0; half < 2; ++half)
    for (unsigned l = 0; l < 32; ++l) {
      const std::uint8_t* from = digits + 128 * half + l;
      block.qs[32 * half + l] =
          static_cast<std::uint8_t>(from[0] | (from[32] << 2) | (from[64] << 4) | (from[96] << 6));
    }
}

}  // namespace

void encode_tq1_0(const float* values, void* blocks, std::size_t n) {
  encode_each<BlockTQ1_0, tq1_0>(values, blocks, n);
}
void encode_tq2_0(const float* values, void* blocks, std::size_t n) {
  encode_each<BlockTQ2_0, tq2_0>(values, blocks, n);
}

}  // namespace hk::kernels
