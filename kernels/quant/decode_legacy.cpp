// Decoders of the legacy blocks: one f16 scale, plain codes of 1, 2, 4, 5 or 8 bits.
#include "kernels/quant/blocks.h"
#include "kernels/quant/decode.h"
#include "kernels/quant/decode_each.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// Element i of 16 bytes: the low nibbles are elements 0..15, the high nibbles 16..31.
int nibble(const std::uint8_t* qs, unsigned i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

int fifth_bit(std::uint32_t qh, unsigned i) { return static_cast<int>((qh >> i) & 1u) << 4; }

void q1_0(const BlockQ1_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned i = 0; i < 128; ++i) out[i] = (block.qs[i / 8] >> (i % 8) & 1) != 0 ? d : -d;
}

void q2_0(const BlockQ2_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned i = 0; i < 64; ++i) out[i] = static_cast<float>((block.qs[i / 4] >> (2 * (i % 4)) & 3) - 1) * d;
}

void q4_0(const BlockQ4_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned i = 0; i < 32; ++i) out[i] = static_cast<float>(nibble(block.qs, i) - 8) * d;
}

void q4_1(const BlockQ4_1& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  for (unsigned i = 0; i < 32; ++i) out[i] = static_cast<float>(nibble(block.qs, i)) * d + m;
}

void q5_0(const BlockQ5_0& block, float* out) {
  const float d = f16_to_f32(block.d);
  const std::uint32_t qh = block.qh;
  for (unsigned i = 0; i < 32; ++i) out[i] = static_cast<float>((nibble(block.qs, i) | fifth_bit(qh, i)) - 16) * d;
}

void q5_1(const BlockQ5_1& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  const std::uint32_t qh = block.qh;
  for (unsigned i = 0; i < 32; ++i) out[i] = static_cast<float>(nibble(block.qs, i) | fifth_bit(qh, i)) * d + m;
}

/// q8_0 and q8_1; the cached sum of q8_1 plays no part.
template <typename Block>
void q8(const Block& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned i = 0; i < 32; ++i) out[i] = static_cast<float>(block.qs[i]) * d;
}

}  // namespace

void decode_q1_0(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ1_0, q1_0>(blocks, out, n); }
void decode_q2_0(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ2_0, q2_0>(blocks, out, n); }
void decode_q4_0(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ4_0, q4_0>(blocks, out, n); }
void decode_q4_1(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ4_1, q4_1>(blocks, out, n); }
void decode_q5_0(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ5_0, q5_0>(blocks, out, n); }
void decode_q5_1(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ5_1, q5_1>(blocks, out, n); }
void decode_q8_0(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ8_0, q8>(blocks, out, n); }
void decode_q8_1(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ8_1, q8>(blocks, out, n); }

}  // namespace hk::kernels
