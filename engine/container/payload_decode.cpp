// Decoders of codes with scales apart (dual and split types) and of tiled matrices.
#include "engine/container/payload_decode.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/container/metadata_blob.h"
#include "engine/container/payload.h"
#include "kernels/quant/codebooks.h"
#include "kernels/quant/half.h"

namespace hk::engine {
namespace {

/// NF4 of HK-FORMAT-NOTES.md: quantiles of a normal distribution.
constexpr float kNF4[16] = {-1.0f,       -0.6961928f, -0.5250731f, -0.3949175f, -0.2844414f, -0.1847734f,
                            -0.0910500f, 0.0f,        0.0795803f,  0.1609302f,  0.2461123f,  0.3379152f,
                            0.4407098f,  0.5626170f,  0.7229568f,  1.0f};

/// E2M1 as floats: unlike the integers that the GGUF blocks decode with, code 8 is a negative zero.
constexpr float kE2M1[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                             -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

/// E8M0 scale 2^(e - 127); 255 is NaN.
float e8m0_to_f32(std::uint8_t e) {
  const std::uint32_t bits = e == 0 ? 0x00400000u : e == 255 ? 0x7FC00000u : static_cast<std::uint32_t>(e) << 23;
  return std::bit_cast<float>(bits);
}

float load_f32(std::span<const std::byte> bytes, std::uint64_t index) {
  return load_little_endian<float>(bytes.data() + 4 * index);
}

unsigned nibble(std::span<const std::byte> bytes, std::uint64_t index) {
  return std::to_integer<unsigned>(bytes[index / 2]) >> (index % 2 * 4) & 15;
}

}  // namespace

void decode_dual(const TensorView& tensor, std::span<float> out) {
  const std::uint64_t block = tensor.block_size;
  for (std::uint64_t start = 0, b = 0; start < out.size(); start += block, ++b) {
    const float scale = load_f32(tensor.scales, b);
    const auto values = out.subspan(start, std::min<std::uint64_t>(block, out.size() - start));
    switch (tensor.type) {
      case StorageType::kDQ4: {
        const auto codes = tensor.data.subspan(b * (block / 2));
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = kNF4[nibble(codes, i)] * scale;
        break;
      }
      case StorageType::kDQT: {
        const float by_code[4] = {0.0f, scale, -scale, 0.0f};  // code 3 has no meaning and was refused
        const auto codes = tensor.data.subspan(b * (block / 4));
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = by_code[std::to_integer<unsigned>(codes[i / 4]) >> (i % 4 * 2) & 3];
        break;
      }
      default:
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>(std::to_integer<std::int8_t>(tensor.data[start + i])) * scale;
    }
  }
}

void decode_split_blocks(const TensorView& tensor, std::span<float> out) {
  for (std::uint64_t i = 0; i < out.size(); ++i) {
    const auto code = nibble(tensor.data, i);
    switch (tensor.type) {
      case StorageType::kIQ4_NL:
        out[i] = static_cast<float>(kernels::kIQ4NLValues[code]) * load_f32(tensor.scales, i / tensor.block_size);
        break;
      case StorageType::kMXFP4:
        out[i] = kE2M1[code] * e8m0_to_f32(std::to_integer<std::uint8_t>(tensor.scales[i / 32]));
        break;
      default:
        out[i] = kE2M1[code] * kernels::fp8_e4m3_to_f32(std::to_integer<std::uint8_t>(tensor.scales[i / 16]));
    }
  }
}

void decode_tiled(const TensorView& tensor, std::span<float> out) {
  const std::uint64_t rows = tensor.shape[0], cols = tensor.shape[1];
  const auto tile = tile_size(tensor.tile_layout);
  if (tile.rows == 0) {  // col_major
    for (std::uint64_t r = 0; r < rows; ++r)
      for (std::uint64_t c = 0; c < cols; ++c) out[r * cols + c] = load_f32(tensor.data, c * rows + r);
    return;
  }
  std::uint64_t stored = 0;  // elements before the current tile
  for (std::uint64_t row = 0; row < rows; row += tile.rows)
    for (std::uint64_t col = 0; col < cols; col += tile.cols) {
      const std::uint64_t height = std::min<std::uint64_t>(tile.rows, rows - row);
      const std::uint64_t width = std::min<std::uint64_t>(tile.cols, cols - col);
      for (std::uint64_t r = 0; r < height; ++r)
        for (std::uint64_t c = 0; c < width; ++c)
          out[(row + r) * cols + col + c] = load_f32(tensor.data, stored + r * tile.cols + c);
      stored += std::uint64_t{tile.rows} * tile.cols;
    }
}

}  // namespace hk::engine
