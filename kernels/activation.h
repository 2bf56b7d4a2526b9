// How prepared activation rows lie in memory: one record a row, shared by row dots and register tiles.
//
// Layer: kernels. A record is contiguous and starts on a 64-byte boundary:
//   kF32:    cols f32
//   kQ8x32:  cols int8 codes | cols/32 f32 scales | cols/32 i32 sums of 32 codes | cols/16 i16 sums of 16 codes
//   kQ8x256: cols int8 codes | cols/256 f32 scales | per 256 codes 32 i16: 16 sums of 16, 8 sums of 32, the sum of 256,
//   zeros
// Padding up to the stride is zero; for kF32, often a model's own rows, it may be anything.
// Codes are in -127..127 and come from one rule on every ISA level (see quantize_row), so that the integers are the
// same everywhere: code = round-half-even(x * (127 / max|x|)) in f32. The scale of 256 elements is max|x| / 127; that
// of 32 is the one that fits the codes best in the least squares sense, sum(x * code) / sum(code * code), which takes 3
// % off the error of the products (on 256 it would take less than 0.1 %).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/quant/format.h"

namespace hk::kernels {

/// The i16 sums of one 256-element super-block (none exceeds 256 * 127) and where they stand.
inline constexpr std::size_t kSuperSums = 32;
inline constexpr std::size_t kSumsOf16 = 0, kSumsOf32 = 16, kSumOf256 = 24;

/// Byte offsets in one activation record and the distance between records.
struct ActivationLayout {
  std::size_t scales = 0;
  std::size_t sums = 0;
  std::size_t sums16 = 0;  ///< kQ8x32 only
  std::size_t stride = 0;  ///< multiple of 64
};

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr ActivationLayout activation_layout(ActivationFormat format, std::size_t cols) {
  ActivationLayout layout;
  switch (format) {
    case ActivationFormat::kQ8x32:
      layout.scales = cols;
      layout.sums = layout.scales + cols / 32 * sizeof(float);
      layout.sums16 = layout.sums + cols / 32 * sizeof(std::int32_t);
      layout.stride = round_up(layout.sums16 + cols / 16 * sizeof(std::int16_t), 64);
      break;
    case ActivationFormat::kQ8x256:
      layout.scales = cols;
      layout.sums = layout.scales + cols / 256 * sizeof(float);
      layout.stride = round_up(layout.sums + cols / 256 * kSuperSums * sizeof(std::int16_t), 64);
      break;
    case ActivationFormat::kF32:
    case ActivationFormat::kNone:
      layout.stride = round_up(cols * sizeof(float), 64);
      break;
  }
  return layout;
}

}  // namespace hk::kernels
