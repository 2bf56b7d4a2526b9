// Unpackers of the float weights: columns of one row, or of W rows as float lanes.
//
// Part of the level sources (see vec.h). A unit is 16 bytes a row, a wide unit 4 * W bytes.
#pragma once

#include "kernels/isa/half_words.h"

namespace hk::kernels {
namespace {

// W / kRowsAVector columns from byte `offset` on of each of kRowsAVector rows.
#if defined(HK_ISA_AVX512)
/// Eight columns each of two rows. Whole vectors of one row would make the sum of a chunk sixteen chains
/// (matmul_float.cpp), and adding these up took 3 % of the time of a tile.
inline constexpr int kRowsAVector = 2;
HK_INLINE vf load_f_rows(const std::uint8_t* const* rows, int offset) {
  return load_f_pair(rows[0] + offset, rows[1] + offset);
}
HK_INLINE vf load_half_rows(const std::uint8_t* const* rows, int offset) {
  return load_half_pair(rows[0] + offset, rows[1] + offset);
}
HK_INLINE vf load_bf16_rows(const std::uint8_t* const* rows, int offset) {
  return load_bf16_pair(rows[0] + offset, rows[1] + offset);
}
#else
inline constexpr int kRowsAVector = 1;
HK_INLINE vf load_f_rows(const std::uint8_t* const* rows, int offset) { return load_f(rows[0] + offset); }
HK_INLINE vf load_half_rows(const std::uint8_t* const* rows, int offset) { return load_half(rows[0] + offset); }
HK_INLINE vf load_bf16_rows(const std::uint8_t* const* rows, int offset) { return load_bf16(rows[0] + offset); }
#endif

/// kBytes a weight; load() takes W / kRowsAVector neighbouring columns of kRowsAVector rows, spread() turns a dword of
/// every row into its columns.
struct F32 {
  static constexpr int kBytes = 4;
  static HK_INLINE vf load(const std::uint8_t* const* rows, int offset) { return load_f_rows(rows, offset); }
  static HK_INLINE void spread(vi packed, vf* columns, int) { columns[0] = as_f(packed); }
};
struct F16 {
  static constexpr int kBytes = 2;
  static HK_INLINE vf load(const std::uint8_t* const* rows, int offset) { return load_half_rows(rows, offset); }
  static HK_INLINE void spread(vi packed, vf* columns, int stride) { split_halves(packed, columns, columns + stride); }
};
struct BF16 {
  static constexpr int kBytes = 2;
  static HK_INLINE vf load(const std::uint8_t* const* rows, int offset) { return load_bf16_rows(rows, offset); }
  static HK_INLINE void spread(vi packed, vf* columns, int stride) {
    columns[0] = as_f(packed << 16);
    columns[stride] = as_f(packed & static_cast<std::int32_t>(0xFFFF0000));
  }
};

template <typename F>
HK_INLINE void unpack_wide(const std::uint8_t* const* rows, std::size_t offset, vf* columns, int stride) {
  vi packed[W];
  load_rows_wide(rows, offset, packed);
  for (int j = 0; j < W; ++j) F::spread(packed[j], columns + j * (4 / F::kBytes) * stride, stride);
}
template <typename F>
HK_INLINE void unpack_unit(const std::uint8_t* const* rows, std::size_t offset, vf* columns, int stride) {
  vi packed[4];
  load_rows16(rows, offset, packed);
  for (int j = 0; j < 4; ++j) F::spread(packed[j], columns + j * (4 / F::kBytes) * stride, stride);
}

}  // namespace
}  // namespace hk::kernels
