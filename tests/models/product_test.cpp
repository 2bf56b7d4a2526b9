// Prepared rows: a row that is prepared in parts is the one that is prepared at once.
#include "models/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/kernels.h"
#include "kernels/quant/sample_blocks.h"

namespace hk::test {
namespace {

using kernels::ActivationFormat;
using models::Matrix;
using models::PreparedRows;

constexpr std::size_t kRows = 3;

Matrix matrix_for(ActivationFormat format) {
  static const std::byte kSome{};
  Matrix matrix;
  matrix.data = &kSome;
  matrix.activation = format;
  return matrix;
}

std::size_t record_bytes(ActivationFormat format, std::size_t cols) {
  return format == ActivationFormat::kF32 ? cols * sizeof(float) : kernels::activation_layout(format, cols).stride;
}

TEST(PreparedRows, PartsMakeTheRow) {
  const kernels::KernelTable& table = kernels::kernels();
  const Matrix short_blocks = matrix_for(ActivationFormat::kQ8x32),
               super_blocks = matrix_for(ActivationFormat::kQ8x256), floats = matrix_for(ActivationFormat::kF32);
  for (const std::size_t cols : {256, 288, 480, 512, 1024, 1056}) {
    const bool whole = cols % 256 == 0;
    models::RowBuffer from_buffer, into_buffer;
    const models::Rows from = from_buffer.shape(kRows, cols), into = into_buffer.shape(kRows, cols);
    kernels::SampleRandom random(5);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t c = 0; c < cols; ++c) from[i][c] = i == 1 ? 0.0F : random.between(-3, 3);
    }
    const Matrix none;
    PreparedRows at_once(table), in_parts(table);
    at_once.begin(from, {&short_blocks, whole ? &super_blocks : &none, &floats});
    in_parts.begin(into, {&short_blocks, whole ? &super_blocks : &none, &floats});
    for (std::size_t i = kRows; i-- > 0;) {
      at_once.prepare_row(i);
      for (std::size_t first = (cols - 1) / 256 * 256;; first -= 256) {  // in any order
        in_parts.prepare_part(i, first, std::min<std::size_t>(256, cols - first), from[i] + first);
        if (first == 0) break;
      }
    }
    for (const ActivationFormat format :
         {ActivationFormat::kQ8x32, ActivationFormat::kQ8x256, ActivationFormat::kF32}) {
      if (format == ActivationFormat::kQ8x256 && !whole) continue;
      for (std::size_t i = 0; i < kRows; ++i)
        EXPECT_EQ(std::memcmp(in_parts.record(format, i), at_once.record(format, i), record_bytes(format, cols)), 0)
            << "row " << i << " of " << cols << " columns";
    }
  }
}

}  // namespace
}  // namespace hk::test
