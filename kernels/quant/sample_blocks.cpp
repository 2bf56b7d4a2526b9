// Random blocks with ordinary scales (see sample_blocks.h).
#include "kernels/quant/sample_blocks.h"

#include <cstring>

#include "kernels/quant/blocks.h"
#include "kernels/quant/half.h"

namespace hk::kernels {
namespace {

/// Around 0.01, as weights of a layer have it, within a factor of two.
std::uint16_t small_half(SampleRandom& random) { return f32_to_f16(random.between(0.01F, 0.02F)); }

void set_scales(BlockMXFP4& block, SampleRandom& random) {
  block.e = static_cast<std::uint8_t>(120 + random.bits() % 4);  // 2^-8 .. 2^-5
}
void set_scales(BlockNVFP4& block, SampleRandom& random) {
  for (std::uint8_t& d : block.d) d = static_cast<std::uint8_t>(0x18 + random.bits() % 16);  // 2^-4 .. 2^-2
}
void set_scales(BlockIQ1_M& block, SampleRandom& random) {
  const unsigned half = small_half(random);
  for (int i = 0; i < 4; ++i)
    block.scales[i] = static_cast<std::uint16_t>((block.scales[i] & 0x0FFFU) | ((half >> (4 * i) & 0xFU) << 12));
}
/// All others have one f16 scale and some a second one for the minima.
template <typename Block>
void set_scales(Block& block, SampleRandom& random) {
  block.d = small_half(random);
  if constexpr (requires { block.m; }) block.m = small_half(random);
  if constexpr (requires { block.dmin; }) block.dmin = small_half(random);
}

template <typename Block>
bool fill(void* out, std::size_t blocks, SampleRandom& random) {
  for (std::size_t b = 0; b < blocks; ++b) {
    std::uint8_t bytes[sizeof(Block)];
    for (std::size_t i = 0; i < sizeof bytes; i += 8) {
      const std::uint64_t bits = random.bits();
      std::memcpy(bytes + i, &bits, sizeof bytes - i < 8 ? sizeof bytes - i : 8);
    }
    Block block;
    std::memcpy(&block, bytes, sizeof block);
    set_scales(block, random);
    std::memcpy(static_cast<std::uint8_t*>(out) + b * sizeof block, &block, sizeof block);
  }
  return true;
}

template <typename Element, typename Encode>
bool fill_dense(void* out, std::size_t elements, SampleRandom& random, const Encode& encode) {
  for (std::size_t i = 0; i < elements; ++i) {
    const Element element = encode(random.between(-0.1F, 0.1F));
    std::memcpy(static_cast<std::uint8_t*>(out) + i * sizeof element, &element, sizeof element);
  }
  return true;
}

}  // namespace

bool fill_sample_blocks(const Format& format, void* out, std::size_t blocks, SampleRandom& random) {
  switch (format.type) {
    case StorageType::kF32:
      return fill_dense<float>(out, blocks, random, [](float v) { return v; });
    case StorageType::kF16:
      return fill_dense<std::uint16_t>(out, blocks, random, f32_to_f16);
    case StorageType::kBF16:
      return fill_dense<std::uint16_t>(out, blocks, random, f32_to_bf16);
#define HK_SAMPLE(name)      \
  case StorageType::k##name: \
    return fill<Block##name>(out, blocks, random);
      HK_SAMPLE(Q1_0)
      HK_SAMPLE(Q2_0)
      HK_SAMPLE(Q4_0)
      HK_SAMPLE(Q4_1)
      HK_SAMPLE(Q5_0)
      HK_SAMPLE(Q5_1)
      HK_SAMPLE(Q8_0)
      HK_SAMPLE(IQ4_NL)
      HK_SAMPLE(MXFP4)
      HK_SAMPLE(NVFP4)
      HK_SAMPLE(Q2_K)
      HK_SAMPLE(Q3_K)
      HK_SAMPLE(Q4_K)
      HK_SAMPLE(Q5_K)
      HK_SAMPLE(Q6_K)
      HK_SAMPLE(IQ4_XS)
      HK_SAMPLE(IQ1_S)
      HK_SAMPLE(IQ1_M)
      HK_SAMPLE(IQ2_XXS)
      HK_SAMPLE(IQ2_XS)
      HK_SAMPLE(IQ2_S)
      HK_SAMPLE(IQ3_XXS)
      HK_SAMPLE(IQ3_S)
      HK_SAMPLE(TQ1_0)
      HK_SAMPLE(TQ2_0)
#undef HK_SAMPLE
    default:
      return false;
  }
}

}  // namespace hk::kernels
