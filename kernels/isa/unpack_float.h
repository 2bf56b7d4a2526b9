// Unpackers of the float weights: columns of W rows as float lanes.
//
// Part of the level sources (see vec.h). A unit is 16 bytes a row, a wide unit 4 * W bytes.
#pragma once

#include "kernels/isa/vec.h"

namespace hk::kernels {
namespace {

/// kBytes a weight; spread() turns a dword of every row into its columns.
struct F32 {
  static constexpr int kBytes = 4;
  static HK_INLINE void spread(vi packed, vf* columns, int) { columns[0] = as_f(packed); }
};
struct F16 {
  static constexpr int kBytes = 2;
  static HK_INLINE void spread(vi packed, vf* columns, int stride) { split_halves(packed, columns, columns + stride); }
};
struct BF16 {
  static constexpr int kBytes = 2;
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
