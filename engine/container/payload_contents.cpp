// What payloads say about themselves: set bits against values, row pointers and block columns against the shape, codes.
#include <fmt/format.h>

#include <bit>

#include "engine/container/metadata_blob.h"
#include "engine/container/payload.h"

namespace hk::engine {
namespace {

using Wide = unsigned __int128;

std::string check_bitmask(const TensorView& tensor) {
  const std::uint64_t elements = tensor.elements();
  const std::uint64_t mask = bitmask_bytes(elements);
  std::uint64_t set = 0;
  for (std::uint64_t i = 0; i < elements / 8; ++i) set += std::popcount(std::to_integer<unsigned>(tensor.data[i]));
  if (const unsigned rest = elements % 8; rest != 0)
    set += std::popcount(std::to_integer<unsigned>(tensor.data[elements / 8]) & ((1u << rest) - 1));
  const std::uint64_t values = (tensor.data.size() - mask) / 4;
  if (set == values) return "";
  return fmt::format("its bitmask has {} set bits, but {} values follow", set, values);
}

std::string check_2_4(const TensorView& tensor) {
  const std::uint64_t groups = tensor.elements() / 4;
  const std::byte* values = tensor.data.data() + index_bytes_2_4(tensor.elements());
  for (std::uint64_t group = 0; group < groups; ++group) {
    const auto nibble = std::to_integer<unsigned>(tensor.data[group / 2]) >> (group % 2 * 4);
    if ((nibble & 3) != (nibble >> 2 & 3)) continue;
    // Two values for one place: harmless when they are the same bits, else nobody can say which one is meant.
    if (load_little_endian<std::uint32_t>(values + 8 * group) !=
        load_little_endian<std::uint32_t>(values + 8 * group + 4))
      return fmt::format("group {} of its 2:4 payload holds two values for position {}", group, nibble & 3);
  }
  return "";
}

std::string check_ternary(const TensorView& tensor) {
  const std::uint64_t block = tensor.block_size;
  for (std::uint64_t i = 0; i < tensor.elements(); ++i) {
    const auto byte = std::to_integer<unsigned>(tensor.data[i / block * (block / 4) + i % block / 4]);
    if ((byte >> (i % block % 4 * 2) & 3) == 3)
      return fmt::format("element {} of its dqt payload has code 3; 0, 1 and 2 have a meaning", i);
  }
  return "";
}

std::string check_block_sparse(const TensorView& tensor) {
  const auto head = read_block_sparse_head(tensor.data);
  if (head.block_rows == 0 || head.block_cols == 0)
    return fmt::format("its blocks are {} by {}; both must be positive", head.block_rows, head.block_cols);
  const Wide needed = Wide{kBlockSparseHeadBytes} + Wide{4} * head.row_pointers + Wide{4} * head.blocks +
                      Wide{4} * head.blocks * head.block_rows * head.block_cols;
  if (needed != tensor.data.size())
    return fmt::format("its {} row pointers and {} blocks of {} by {} do not fill its {} bytes of data exactly",
                       head.row_pointers, head.blocks, head.block_rows, head.block_cols, tensor.data.size());
  const std::uint64_t rows = tensor.shape[0], cols = tensor.shape[1];
  const std::uint64_t block_rows = rows / head.block_rows + (rows % head.block_rows != 0);
  if (head.row_pointers != Wide{block_rows} + 1)
    return fmt::format("it has {} row pointers; {} rows in blocks of {} need {}", head.row_pointers, rows,
                       head.block_rows, block_rows + 1);
  std::uint32_t previous = 0;
  for (std::uint32_t i = 0; i < head.row_pointers; ++i) {
    const auto at = load_little_endian<std::uint32_t>(head.row_pointer + 4 * std::size_t{i});
    if (i == 0 && at != 0) return fmt::format("its first row pointer is {}; 0 was expected", at);
    if (at < previous || at > head.blocks)
      return fmt::format("its row pointer {} is {}; {} to {} was expected", i, at, previous, head.blocks);
    previous = at;
  }
  if (previous != head.blocks)
    return fmt::format("its last row pointer is {}; {} blocks are stored", previous, head.blocks);
  for (std::uint32_t i = 0; i < head.blocks; ++i) {
    const auto column = load_little_endian<std::uint32_t>(head.block_column + 4 * std::size_t{i});
    if (std::uint64_t{column} * head.block_cols >= cols)
      return fmt::format("its block {} lies in block column {}, outside the {} columns", i, column, cols);
  }
  return "";
}

}  // namespace

BlockSparseHead read_block_sparse_head(std::span<const std::byte> data) {
  BlockSparseHead head;
  head.block_rows = load_little_endian<std::uint16_t>(data.data());
  head.block_cols = load_little_endian<std::uint16_t>(data.data() + 2);
  head.row_pointers = load_little_endian<std::uint32_t>(data.data() + 4);
  head.blocks = load_little_endian<std::uint32_t>(data.data() + 8);
  head.row_pointer = data.data() + kBlockSparseHeadBytes;
  head.block_column = head.row_pointer + 4 * std::size_t{head.row_pointers};
  head.values = head.block_column + 4 * std::size_t{head.blocks};
  return head;
}

std::string check_contents(const TensorView& tensor) {
  switch (payload_kind(tensor, !tensor.scales.empty())) {
    case PayloadKind::kBitmask:
      return check_bitmask(tensor);
    case PayloadKind::kStructured2_4:
      return check_2_4(tensor);
    case PayloadKind::kBlockSparse:
      return check_block_sparse(tensor);
    case PayloadKind::kDual:
      return tensor.type == StorageType::kDQT ? check_ternary(tensor) : "";
    default:
      return "";
  }
}

}  // namespace hk::engine
