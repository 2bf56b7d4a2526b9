// Decoders of the formats whose four-bit codes index a table of 16 values: iq4_nl, iq4_xs, mxfp4, nvfp4.
#include "kernels/quant/blocks.h"
#include "kernels/quant/codebooks.h"
#include "kernels/quant/decode.h"
#include "kernels/quant/decode_each.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// `Bytes` bytes to 2 * Bytes elements: the low nibbles first, then the high nibbles.
template <unsigned Bytes>
void put_nibbles(const std::uint8_t* qs, const std::int8_t* table, float scale, float* out) {
  for (unsigned j = 0; j < Bytes; ++j) {
    out[j] = scale * static_cast<float>(table[qs[j] & 15]);
    out[j + Bytes] = scale * static_cast<float>(table[qs[j] >> 4]);
  }
}

void iq4_nl(const BlockIQ4_NL& block, float* out) { put_nibbles<16>(block.qs, kIQ4NLValues, f16_to_f32(block.d), out); }

void iq4_xs(const BlockIQ4_XS& block, float* out) {
  const float d = f16_to_f32(block.d);
  const unsigned scales_h = block.scales_h;
  for (unsigned g = 0; g < 8; ++g) {
    const int low = (block.scales_l[g / 2] >> (4 * (g % 2))) & 15;
    const int high = static_cast<int>((scales_h >> (2 * g)) & 3u);
    put_nibbles<16>(block.qs + 16 * g, kIQ4NLValues, d * static_cast<float>((low | (high << 4)) - 32), out + 32 * g);
  }
}

/// The largest scales overflow to infinity here, as they must.
void mxfp4(const BlockMXFP4& block, float* out) {
  put_nibbles<16>(block.qs, kE2M1Values, e8m0_half_to_f32(block.e), out);
}

void nvfp4(const BlockNVFP4& block, float* out) {
  for (unsigned s = 0; s < 4; ++s)
    put_nibbles<8>(block.qs + 8 * s, kE2M1Values, ue4m3_half_to_f32(block.d[s]), out + 16 * s);
}

}  // namespace

void decode_iq4_nl(const void* blocks, float* out, std::size_t n) { decode_each<BlockIQ4_NL, iq4_nl>(blocks, out, n); }
void decode_iq4_xs(const void* blocks, float* out, std::size_t n) { decode_each<BlockIQ4_XS, iq4_xs>(blocks, out, n); }
void decode_mxfp4(const void* blocks, float* out, std::size_t n) { decode_each<BlockMXFP4, mxfp4>(blocks, out, n); }
void decode_nvfp4(const void* blocks, float* out, std::size_t n) { decode_each<BlockNVFP4, nvfp4>(blocks, out, n); }

}  // namespace hk::kernels
