// Decoders of the K-quants: 256-element super-blocks whose groups have quantized scales, and their activation format
// q8_k.
#include "kernels/quant/blocks.h"
#include "kernels/quant/decode.h"
#include "kernels/quant/decode_each.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// Two-bit code of element i in 64 bytes: a byte of a half carries elements r, r + 32, r + 64, r + 96.
int two_bits(const std::uint8_t* qs, unsigned i) {
  const unsigned half = i / 128;
  const unsigned r = i % 128;
  return (qs[32 * half + r % 32] >> (2 * (r / 32))) & 3;
}

/// Four-bit code of element i in 128 bytes: even groups of 32 are low nibbles, odd groups high nibbles.
int four_bits(const std::uint8_t* qs, unsigned i) {
  const std::uint8_t byte = qs[32 * (i / 64) + i % 32];
  return i % 64 < 32 ? byte & 15 : byte >> 4;
}

void q2_k(const BlockQ2_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (unsigned g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(block.scales[g] & 15);
    const float min = dmin * static_cast<float>(block.scales[g] >> 4);
    for (unsigned i = 16 * g; i < 16 * g + 16; ++i) out[i] = scale * static_cast<float>(two_bits(block.qs, i)) - min;
  }
}

void q3_k(const BlockQ3_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(unpack_q3_k_scale(block.scales, g));
    for (unsigned i = 16 * g; i < 16 * g + 16; ++i) {
      const int high = (block.hmask[i % 32] >> (i / 32)) & 1;
      out[i] = scale * static_cast<float>(two_bits(block.qs, i) + 4 * high - 4);
    }
  }
}

void q4_k(const BlockQ4_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (unsigned g = 0; g < 8; ++g) {
    const ScaleMin packed = unpack_scale_min(block.scales, g);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (unsigned i = 32 * g; i < 32 * g + 32; ++i) out[i] = scale * static_cast<float>(four_bits(block.qs, i)) - min;
  }
}

void q5_k(const BlockQ5_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (unsigned g = 0; g < 8; ++g) {
    const ScaleMin packed = unpack_scale_min(block.scales, g);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (unsigned i = 32 * g; i < 32 * g + 32; ++i) {
      const int fifth = (block.qh[i % 32] >> g) & 1;
      out[i] = scale * static_cast<float>(four_bits(block.qs, i) | (fifth << 4)) - min;
    }
  }
}

void q6_k(const BlockQ6_K& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned half = i / 128;
    const unsigned k = i % 128 / 32;
    const unsigned l = i % 32;
    const std::uint8_t byte = block.ql[64 * half + 32 * (k & 1) + l];
    const int low = k < 2 ? byte & 15 : byte >> 4;
    const int high = (block.qh[32 * half + l] >> (2 * k)) & 3;
    const float scale = d * static_cast<float>(block.scales[i / 16]);
    out[i] = scale * static_cast<float>((low | (high << 4)) - 32);
  }
}

void q8_k(const BlockQ8_K& block, float* out) {
  const float d = block.d;
  for (unsigned i = 0; i < 256; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

}  // namespace

void decode_q2_k(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ2_K, q2_k>(blocks, out, n); }
void decode_q3_k(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ3_K, q3_k>(blocks, out, n); }
void decode_q4_k(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ4_K, q4_k>(blocks, out, n); }
void decode_q5_k(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ5_K, q5_k>(blocks, out, n); }
void decode_q6_k(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ6_K, q6_k>(blocks, out, n); }
void decode_q8_k(const void* blocks, float* out, std::size_t n) { decode_each<BlockQ8_K, q8_k>(blocks, out, n); }

}  // namespace hk::kernels
