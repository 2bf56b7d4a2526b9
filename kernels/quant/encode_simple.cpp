// Quantizers of the plain formats: halves, legacy blocks of 32 and the activation formats q8_1 and q8_k.
#include <cstring>

#include "kernels/quant/blocks.h"
#include "kernels/quant/encode.h"
#include "kernels/quant/encode_support.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

template <std::uint16_t (*Convert)(float)>
void encode_halves(const float* values, void* halves, std::size_t n) {
  auto* bytes = static_cast<unsigned char*>(halves);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint16_t half = Convert(values[i]);
    std::memcpy(bytes + 2 * i, &half, 2);
  }
}

/// Puts the low four bits of 32 codes into 16 bytes; returns the fifth bits as a mask.
std::uint32_t pack_nibbles(const int* codes, std::uint8_t* qs) {
  std::uint32_t fifth = 0;
  for (unsigned j = 0; j < 16; ++j) qs[j] = static_cast<std::uint8_t>((codes[j] & 15) | ((codes[j + 16] & 15) << 4));
  for (unsigned i = 0; i < 32; ++i) fifth |= static_cast<std::uint32_t>((codes[i] >> 4) & 1) << i;
  return fifth;
}

/// Symmetric codes 0..2 * Middle - 1 around Middle; the largest magnitude gets code 0. Returns the scale.
template <int Middle>
float symmetric_codes(const float* x, int* codes) {
  const float d = first_largest(x, 32) / static_cast<float>(-Middle);
  const float id = inverse(d);
  for (unsigned i = 0; i < 32; ++i)
    codes[i] = truncate(x[i] * id + (static_cast<float>(Middle) + 0.5f), 0, 2 * Middle - 1);
  return d;
}

/// Codes 0..Top from the smallest to the largest value. Returns the scale; the smallest value is the offset.
template <int Top>
float affine_codes(const float* x, int* codes, float* low) {
  float smallest = x[0];
  float largest = x[0];
  for (unsigned i = 1; i < 32; ++i) {
    smallest = x[i] < smallest ? x[i] : smallest;
    largest = x[i] > largest ? x[i] : largest;
  }
  const float d = (largest - smallest) / static_cast<float>(Top);
  const float id = inverse(d);
  for (unsigned i = 0; i < 32; ++i) codes[i] = truncate((x[i] - smallest) * id + 0.5f, 0, Top);
  *low = smallest;
  return d;
}

/// Codes -127..127. Returns the scale.
float byte_codes(const float* x, std::int8_t* codes) {
  const float d = largest_magnitude(x, 32) / 127.0f;
  const float id = inverse(d);
  for (unsigned i = 0; i < 32; ++i) codes[i] = static_cast<std::int8_t>(round_away(x[i] * id, -127, 127));
  return d;
}

void q4_0(const float* x, BlockQ4_0& block) {
  int codes[32];
  block.d = f32_to_f16(symmetric_codes<8>(x, codes));
  pack_nibbles(codes, block.qs);
}

void q5_0(const float* x, BlockQ5_0& block) {
  int codes[32];
  block.d = f32_to_f16(symmetric_codes<16>(x, codes));
  block.qh = pack_nibbles(codes, block.qs);
}

void q4_1(const float* x, BlockQ4_1& block) {
  int codes[32];
  float low = 0.0f;
  block.d = f32_to_f16(affine_codes<15>(x, codes, &low));
  block.m = f32_to_f16(low);
  pack_nibbles(codes, block.qs);
}

void q5_1(const float* x, BlockQ5_1& block) {
  int codes[32];
  float low = 0.0f;
  block.d = f32_to_f16(affine_codes<31>(x, codes, &low));
  block.m = f32_to_f16(low);
  block.qh = pack_nibbles(codes, block.qs);
}

void q8_0(const float* x, BlockQ8_0& block) { block.d = f32_to_f16(byte_codes(x, block.qs)); }

void q8_1(const float* x, BlockQ8_1& block) {
  const float d = byte_codes(x, block.qs);
  int sum = 0;
  for (const std::int8_t code : block.qs) sum += code;
  block.d = f32_to_f16(d);
  block.s = f32_to_f16(static_cast<float>(sum) * d);
}

void q8_k(const float* x, BlockQ8_K& block) {
  const float largest = first_largest(x, 256);
  if (largest == 0.0f) {
    std::memset(&block, 0, sizeof(block));
    return;
  }
  const float k = -127.0f / largest;
  for (unsigned b = 0; b < 16; ++b) {
    int sum = 0;
    for (unsigned i = 16 * b; i < 16 * b + 16; ++i) {
      const int code = round_even(k * x[i], -127, 127);
      block.qs[i] = static_cast<std::int8_t>(code);
      sum += code;
    }
    block.bsums[b] = static_cast<std::int16_t>(sum);
  }
  block.d = 1.0f / k;
}

}  // namespace

void encode_f32(const float* values, void* blocks, std::size_t n) {
  if (n != 0) std::memcpy(blocks, values, n * sizeof(float));
}
void encode_f16(const float* values, void* blocks, std::size_t n) { encode_halves<f32_to_f16>(values, blocks, n); }
void encode_bf16(const float* values, void* blocks, std::size_t n) { encode_halves<f32_to_bf16>(values, blocks, n); }
void encode_q4_0(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ4_0, q4_0>(values, blocks, n); }
void encode_q4_1(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ4_1, q4_1>(values, blocks, n); }
void encode_q5_0(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ5_0, q5_0>(values, blocks, n); }
void encode_q5_1(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ5_1, q5_1>(values, blocks, n); }
void encode_q8_0(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ8_0, q8_0>(values, blocks, n); }
void encode_q8_1(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ8_1, q8_1>(values, blocks, n); }
void encode_q8_k(const float* values, void* blocks, std::size_t n) { encode_each<BlockQ8_K, q8_k>(values, blocks, n); }

}  // namespace hk::kernels
