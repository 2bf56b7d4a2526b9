// Activation quantization of one ISA level (records of kernels/activation.h).
#include "kernels/isa/level.h"
#include "kernels/isa/quantize.h"

namespace hk::kernels {
namespace {

HK_INLINE int sum_codes(const std::int8_t* codes, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += codes[i];
  return sum;
}

HK_INLINE void clear(std::uint8_t* record, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to; ++i) record[i] = 0;
}

}  // namespace

namespace HK_LEVEL {

void quantize_row(ActivationFormat format, const float* x, std::size_t cols, void* record) {
  auto* bytes = static_cast<std::uint8_t*>(record);
  auto* codes = static_cast<std::int8_t*>(record);
  const ActivationLayout layout = activation_layout(format, cols);
  if (format == ActivationFormat::kQ8x32) {
    for (std::size_t b = 0; b < cols / 32; ++b) {
      const float scale = quantize_group(x + 32 * b, 32, codes + 32 * b);
      const int first = sum_codes(codes + 32 * b, 16), second = sum_codes(codes + 32 * b + 16, 16);
      const std::int32_t sum = first + second;
      const std::int16_t halves[2] = {static_cast<std::int16_t>(first), static_cast<std::int16_t>(second)};
      __builtin_memcpy(bytes + layout.scales + 4 * b, &scale, 4);
      __builtin_memcpy(bytes + layout.sums + 4 * b, &sum, 4);
      __builtin_memcpy(bytes + layout.sums16 + 4 * b, halves, 4);
    }
    clear(bytes, layout.sums16 + cols / 32 * 4, layout.stride);
  } else if (format == ActivationFormat::kQ8x256) {
    for (std::size_t b = 0; b < cols / 256; ++b) {
      const float scale = quantize_group(x + 256 * b, 256, codes + 256 * b);
      std::int16_t sums[kSuperSums] = {};
      int all = 0;
      for (int g = 0; g < 16; ++g) {
        const int sum = sum_codes(codes + 256 * b + 16 * g, 16);
        sums[kSumsOf16 + g] = static_cast<std::int16_t>(sum);
        sums[kSumsOf32 + g / 2] = static_cast<std::int16_t>(sums[kSumsOf32 + g / 2] + sum);
        all += sum;
      }
      sums[kSumOf256] = static_cast<std::int16_t>(all);
      __builtin_memcpy(bytes + layout.scales + 4 * b, &scale, 4);
      __builtin_memcpy(bytes + layout.sums + kSuperSums * 2 * b, sums, sizeof sums);
    }
    clear(bytes, layout.sums + cols / 256 * kSuperSums * 2, layout.stride);
  } else {
    __builtin_memcpy(bytes, x, cols * sizeof(float));
    clear(bytes, cols * sizeof(float), layout.stride);
  }
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
