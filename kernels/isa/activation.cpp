// Activation quantization of one ISA level (records of kernels/activation.h).
#include "kernels/isa/level.h"
#include "kernels/isa/quantize.h"

namespace hk::kernels {
namespace {

/// What is to be written of up to W blocks of 32, a block a lane.
struct ShortBlocks {
  vf scales;
  vi first_sums, second_sums;  ///< of 16 codes each
};
/// quantize_group of `count` <= W blocks of 32, bit for bit: horizontal folds and divisions are done for all of them at
/// once, which alone would take most of the time.
HK_INLINE ShortBlocks quantize_blocks(const float* x, int count, std::int8_t* codes) {
  vf peaks[W];
  for (int b = 0; b < count; ++b) peaks[b] = peaks_of(x + 32 * b, 32);
  for (int b = count; b < W; ++b) peaks[b] = vf{};
  const vf peak = fold_each(peaks, larger_magnitude);
  const vf poison = peak - peak;
  const vi sound = peak > kSmallestPeak;
  alignas(64) float inverses[W];
  store_f(inverses, select(sound, 127.0f / peak, vf{}));
  vf along[W], squares[W], first[W], second[W];
  for (int b = 0; b < count; ++b) {
    vf sum_along{}, sum_squares{}, sums[2] = {};  // in registers: the arrays are written once
    const vf inverse = set_f(inverses[b]);
    for (int i = 0; i < 32; i += W) {
      const vf scaled = load_f(x + 32 * b + i) * inverse;
      const vf kept = codes_of(scaled);
      sum_along = fma(scaled, kept, sum_along);
      sum_squares = fma(kept, kept, sum_squares);
      sums[i / 16] += kept;
      store_codes(codes + 32 * b + i, __builtin_convertvector(kept, vi));
    }
    along[b] = sum_along, squares[b] = sum_squares, first[b] = sums[0], second[b] = sums[1];
  }
  for (int b = count; b < W; ++b) along[b] = squares[b] = first[b] = second[b] = vf{};
  const vf scale = peak / 127.0f * (sum_each(along) / sum_each(squares)) + poison;
  return {select(sound, scale, poison), __builtin_convertvector(sum_each(first), vi),
          __builtin_convertvector(sum_each(second), vi)};
}

/// The sums of each 16 of 256 codes.
HK_INLINE void sums_of_16(const vf* kept, std::int32_t* sums) {
  constexpr int kVectors = 16 / W;  // of a sum
  for (int g = 0; g < 16; g += W) {
    vf groups[W];
    for (int i = 0; i < W; ++i) {
      groups[i] = kept[(g + i) * kVectors];
      for (int part = 1; part < kVectors; ++part) groups[i] += kept[(g + i) * kVectors + part];
    }
    store_i(sums + g, __builtin_convertvector(sum_each(groups), vi));
  }
}

/// 256 values; the sums of the codes are whole numbers far below 2^24, so floats add them exactly.
HK_INLINE void quantize_super_block(const float* x, std::int8_t* codes, float* scale, std::int16_t* sums) {
  float poison;
  const float peak = peak_of(x, 256, &poison);
  const bool zero = !(peak > kSmallestPeak);
  const float inverse = zero ? 0.0f : 127.0f / peak;
  vf kept[256 / W];
  for (int i = 0; i < 256 / W; ++i) {
    kept[i] = codes_of(load_f(x + i * W) * inverse);
    store_codes(codes + i * W, __builtin_convertvector(kept[i], vi));
  }
  *scale = zero ? poison : peak / 127.0f + poison;
  alignas(64) std::int32_t of16[16];
  sums_of_16(kept, of16);
  int all = 0;
  for (int g = 0; g < 16; ++g) {
    sums[kSumsOf16 + g] = static_cast<std::int16_t>(of16[g]);
    all += of16[g];
  }
  for (int g = 0; g < 8; ++g) sums[kSumsOf32 + g] = static_cast<std::int16_t>(of16[2 * g] + of16[2 * g + 1]);
  sums[kSumOf256] = static_cast<std::int16_t>(all);
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
    for_lanes(cols / 32, [&](std::size_t b, int count) HK_LAMBDA_INLINE {
      const ShortBlocks blocks = quantize_blocks(x + 32 * b, count, codes + 32 * b);
      const auto place = [&](std::size_t at, vi v) HK_LAMBDA_INLINE {
        store_some(reinterpret_cast<float*>(bytes + at + 4 * b), as_f(v), count);
      };
      place(layout.scales, as_i(blocks.scales));
      place(layout.sums, blocks.first_sums + blocks.second_sums);
      place(layout.sums16, (blocks.first_sums & 0xFFFF) | (blocks.second_sums << 16));
    });
    clear(bytes, layout.sums16 + cols / 32 * 4, layout.stride);
  } else if (format == ActivationFormat::kQ8x256) {
    for (std::size_t b = 0; b < cols / 256; ++b) {
      float scale;
      std::int16_t sums[kSuperSums] = {};
      quantize_super_block(x + 256 * b, codes + 256 * b, &scale, sums);
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
