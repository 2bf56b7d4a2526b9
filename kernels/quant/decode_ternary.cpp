// Decoders of the ternary formats: digits 0, 1, 2 for -d, 0, +d, packed in base 3 (tq1_0) or in two bits (tq2_0).
#include "kernels/quant/blocks.h"
#include "kernels/quant/decode.h"
#include "kernels/quant/decode_each.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// `Bytes` bytes of `Digits` base-3 digits each; digit n of byte m is element Bytes * n + m. A byte is a fraction in
/// 8-bit fixed point: times 3^n modulo 256 drops the first n digits, and the integer part of three times the rest is
/// the next.
template <unsigned Bytes, unsigned Digits>
void put_digits(const std::uint8_t* bytes, float d, float* out) {
  unsigned power = 1;
  for (unsigned n = 0; n < Digits; ++n, power *= 3)
    for (unsigned m = 0; m < Bytes; ++m) {
      const unsigned fraction = (bytes[m] * power) & 0xFFu;
      const int digit = static_cast<int>((fraction * 3) >> 8);
      out[Bytes * n + m] = static_cast<float>(digit - 1) * d;
    }
}

void tq1_0(const BlockTQ1_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  put_digits<32, 5>(block.qs, d, out);
  put_digits<16, 5>(block.qs + 32, d, out + 160);
  put_digits<4, 4>(block.qh, d, out + 240);
}

void tq2_0(const BlockTQ2_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned r = i % 128;
    const int q = (block.qs[32 * (i / 128) + r % 32] >> (2 * (r / 32))) & 3;
    out[i] = static_cast<float>(q - 1) * d;
  }
}

}  // namespace

void decode_tq1_0(const void* blocks, float* out, std::size_t n) { decode_each<BlockTQ1_0, tq1_0>(blocks, out, n); }
void decode_tq2_0(const void* blocks, float* out, std::size_t n) { decode_each<BlockTQ2_0, tq2_0>(blocks, out, n); }

}  // namespace hk::kernels
