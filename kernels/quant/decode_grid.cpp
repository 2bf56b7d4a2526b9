// Decoders of the grid formats: each group of 8 or 4 elements is a point of a codebook, with signs or an offset.
#include "kernels/quant/blocks.h"
#include "kernels/quant/codebooks.h"
#include "kernels/quant/decode.h"
#include "kernels/quant/decode_each.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// `Count` elements of one grid point of magnitudes: scale * magnitude * (+1 or -1), bit j of `signs` for element j.
template <unsigned Count>
void put_signed(std::uint64_t point, unsigned signs, float scale, float* out) {
  for (unsigned j = 0; j < Count; ++j) {
    const float sign = ((signs >> j) & 1u) != 0 ? -1.0f : 1.0f;
    out[j] = scale * static_cast<float>((point >> (8 * j)) & 0xFFu) * sign;
  }
}

/// Eight elements of one ternary grid point: scale * (-1, 0 or 1, plus delta).
void put_ternary(std::uint64_t point, float delta, float scale, float* out) {
  for (unsigned j = 0; j < 8; ++j) {
    const auto value = static_cast<std::int8_t>((point >> (8 * j)) & 0xFFu);
    out[j] = scale * (static_cast<float>(value) + delta);
  }
}

/// Four-bit scale number `g`: low nibble first.
int nibble_scale(const std::uint8_t* scales, unsigned g) { return (scales[g / 2] >> (4 * (g % 2))) & 15; }

float quarter_scale(float d, int s) { return d * (0.5f + static_cast<float>(s)) * 0.25f; }

constexpr float kDelta = 0.125f;

void iq2_xxs(const BlockIQ2_XXS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned g = 0; g < 8; ++g) {
    const std::uint32_t a = block.groups[g].a;
    const float scale = quarter_scale(d, static_cast<int>(a >> 28));
    for (unsigned l = 0; l < 4; ++l)
      put_signed<8>(kIQ2XXSGrid[block.groups[g].index[l]], kSigns[(a >> (7 * l)) & 127u], scale, out + 32 * g + 8 * l);
  }
}

void iq2_xs(const BlockIQ2_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned k = 0; k < 32; ++k) {
    const std::uint16_t word = block.qs[k];
    const float scale = quarter_scale(d, nibble_scale(block.scales, k / 2));
    put_signed<8>(kIQ2XSGrid[word & 511], kSigns[word >> 9], scale, out + 8 * k);
  }
}

void iq2_s(const BlockIQ2_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned k = 0; k < 32; ++k) {
    const unsigned high = (block.qh[k / 4] >> (2 * (k % 4))) & 3u;
    const float scale = quarter_scale(d, nibble_scale(block.scales, k / 2));
    put_signed<8>(kIQ2SGrid[block.qs[k] | (high << 8)], block.signs[k], scale, out + 8 * k);
  }
}

void iq3_xxs(const BlockIQ3_XXS& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned g = 0; g < 8; ++g) {
    const std::uint32_t a = block.a[g];
    const float scale = d * (0.5f + static_cast<float>(a >> 28)) * 0.5f;
    for (unsigned q = 0; q < 8; ++q) {  // quads; two share a sign index
      const unsigned signs = kSigns[(a >> (7 * (q / 2))) & 127u];
      put_signed<4>(kIQ3XXSGrid[block.qs[8 * g + q]], signs >> (4 * (q % 2)), scale, out + 32 * g + 4 * q);
    }
  }
}

void iq3_s(const BlockIQ3_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned k = 0; k < 64; ++k) {
    const unsigned high = (block.qh[k / 8] >> (k % 8)) & 1u;
    const float scale = d * static_cast<float>(1 + 2 * nibble_scale(block.scales, k / 8));
    const unsigned signs = block.signs[k / 2];
    put_signed<4>(kIQ3SGrid[block.qs[k] | (high << 8)], signs >> (4 * (k % 2)), scale, out + 4 * k);
  }
}

void iq1_s(const BlockIQ1_S& block, float* out) {
  const float d = f16_to_f32(block.d);
  for (unsigned g = 0; g < 8; ++g) {
    const unsigned h = block.qh[g];
    const float scale = d * static_cast<float>(2 * ((h >> 12) & 7u) + 1);
    const float delta = (h & 0x8000u) != 0 ? -kDelta : kDelta;
    for (unsigned l = 0; l < 4; ++l) {
      const unsigned index = block.qs[4 * g + l] | (((h >> (3 * l)) & 7u) << 8);
      put_ternary(kIQ1SGrid[index], delta, scale, out + 32 * g + 8 * l);
    }
  }
}

void iq1_m(const BlockIQ1_M& block, float* out) {
  const float d = f16_to_f32(iq1_m_scale(block));
  for (unsigned k = 0; k < 32; ++k) {
    const unsigned t = k / 2;
    const unsigned s = (block.scales[t / 4] >> (3 * (t % 4))) & 7u;
    const unsigned n = (block.qh[k / 2] >> (4 * (k % 2))) & 15u;
    const float scale = d * static_cast<float>(2 * s + 1);
    put_ternary(kIQ1SGrid[block.qs[k] | ((n & 7u) << 8)], (n & 8u) != 0 ? -kDelta : kDelta, scale, out + 8 * k);
  }
}

}  // namespace

void decode_iq1_s(const void* blocks, float* out, std::size_t n) { decode_each<BlockIQ1_S, iq1_s>(blocks, out, n); }
void decode_iq1_m(const void* blocks, float* out, std::size_t n) { decode_each<BlockIQ1_M, iq1_m>(blocks, out, n); }
void decode_iq2_xxs(const void* blocks, float* out, std::size_t n) {
  decode_each<BlockIQ2_XXS, iq2_xxs>(blocks, out, n);
}
void decode_iq2_xs(const void* blocks, float* out, std::size_t n) { decode_each<BlockIQ2_XS, iq2_xs>(blocks, out, n); }
void decode_iq2_s(const void* blocks, float* out, std::size_t n) { decode_each<BlockIQ2_S, iq2_s>(blocks, out, n); }
void decode_iq3_xxs(const void* blocks, float* out, std::size_t n) {
  decode_each<BlockIQ3_XXS, iq3_xxs>(blocks, out, n);
}
void decode_iq3_s(const void* blocks, float* out, std::size_t n) { decode_each<BlockIQ3_S, iq3_s>(blocks, out, n); }

}  // namespace hk::kernels
