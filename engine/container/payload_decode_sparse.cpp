// Decoders of sparse payloads: zeros everywhere, then the values that are stored.
#include <algorithm>
#include <cstdint>

#include "engine/container/metadata_blob.h"
#include "engine/container/payload.h"
#include "engine/container/payload_decode.h"

namespace hk::engine {

void decode_bitmask(const TensorView& tensor, std::span<float> out) {
  const std::byte* value = tensor.data.data() + bitmask_bytes(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool stored = (std::to_integer<unsigned>(tensor.data[i / 8]) >> (i % 8) & 1u) != 0;
    out[i] = stored ? load_little_endian<float>(value) : 0.0f;
    if (stored) value += 4;
  }
}

void decode_2_4(const TensorView& tensor, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const std::byte* value = tensor.data.data() + index_bytes_2_4(out.size());
  for (std::size_t group = 0; group < out.size() / 4; ++group) {
    const auto positions = std::to_integer<unsigned>(tensor.data[group / 2]) >> (group % 2 * 4);
    out[4 * group + (positions & 3)] = load_little_endian<float>(value);
    out[4 * group + (positions >> 2 & 3)] = load_little_endian<float>(value + 4);
    value += 8;
  }
}

void decode_block_sparse(const TensorView& tensor, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const auto head = read_block_sparse_head(tensor.data);
  const std::uint64_t rows = tensor.shape[0], cols = tensor.shape[1];
  const std::uint64_t block_values = std::uint64_t{head.block_rows} * head.block_cols;
  for (std::uint32_t block_row = 0; block_row + 1 < head.row_pointers; ++block_row) {
    const std::uint64_t row = std::uint64_t{block_row} * head.block_rows;
    const auto first = load_little_endian<std::uint32_t>(head.row_pointer + 4 * std::size_t{block_row});
    const auto last = load_little_endian<std::uint32_t>(head.row_pointer + 4 * (std::size_t{block_row} + 1));
    for (std::uint32_t block = first; block < last; ++block) {
      const std::uint64_t col =
          std::uint64_t{load_little_endian<std::uint32_t>(head.block_column + 4 * std::size_t{block})} *
          head.block_cols;
      // Edge blocks are stored whole; what lies past the shape is not part of the tensor.
      const std::uint64_t height = std::min<std::uint64_t>(head.block_rows, rows - row);
      const std::uint64_t width = std::min<std::uint64_t>(head.block_cols, cols - col);
      const std::byte* values = head.values + 4 * block_values * block;
      for (std::uint64_t r = 0; r < height; ++r)
        for (std::uint64_t c = 0; c < width; ++c)
          out[(row + r) * cols + col + c] = load_little_endian<float>(values + 4 * (r * head.block_cols + c));
    }
  }
}

}  // namespace hk::engine
