// Payload sizes by type, layout and sparsity.
#include "engine/container/payload.h"

#include <fmt/format.h>

#include <limits>

#include "engine/container/metadata_blob.h"

namespace hk::engine {
namespace {

using kernels::Format;
using kernels::StorageClass;
using Kind = PayloadVerdict::Kind;

/// Products of two u64 fit; every sum and product below is formed in it.
using Wide = unsigned __int128;

constexpr Wide divide_up(Wide value, Wide by) { return (value + by - 1) / by; }

std::string decimal(Wide value) {
  return value > std::numeric_limits<std::uint64_t>::max() ? "more than 18446744073709551615"
                                                           : fmt::format("{}", static_cast<std::uint64_t>(value));
}

PayloadVerdict broken(std::string why) { return {Kind::kBroken, std::move(why)}; }
PayloadVerdict unpublished(std::string why) { return {Kind::kUnpublished, std::move(why)}; }

PayloadVerdict expect(std::string_view stream, std::uint64_t found, Wide needed, const TensorView& tensor) {
  if (found == needed) return {};
  return broken(fmt::format("its {} {} bytes; shape {} of {} needs {}", stream, found, tensor.shape_text(),
                            kernels::storage_type_name(tensor.type), decimal(needed)));
}

bool overflows(const TensorView& tensor) {
  // A hair stricter than u64: the decoded floats must be countable in bytes as well.
  return tensor.elements() > std::numeric_limits<std::uint64_t>::max() / 8;
}

PayloadVerdict check_blocks(const TensorView& tensor, const Format& format, const StreamSizes& sizes) {
  if (tensor.cols() % format.block_elements != 0)
    return broken(fmt::format("a row of {} elements is no whole number of {} blocks of {}", tensor.cols(), format.name,
                              format.block_elements));
  return expect("data has", sizes.data, Wide{tensor.elements()} / format.block_elements * format.block_bytes, tensor);
}

PayloadVerdict check_dual(const TensorView& tensor, const Format& format, const StreamSizes& sizes) {
  const std::uint32_t block = tensor.block_size;
  const std::uint32_t codes_a_byte = tensor.type == StorageType::kDQ4 ? 2 : tensor.type == StorageType::kDQT ? 4 : 1;
  if (block == 0 || block % codes_a_byte != 0)
    return broken(
        fmt::format("its block size is {}; {} needs a positive multiple of {}", block, format.name, codes_a_byte));
  const Wide blocks = divide_up(tensor.elements(), block);
  const Wide data = codes_a_byte == 1 ? Wide{tensor.elements()} : blocks * (block / codes_a_byte);
  auto verdict = expect("data has", sizes.data, data, tensor);
  if (verdict.kind == Kind::kFine) verdict = expect("scales have", sizes.scales, blocks * 4, tensor);
  return verdict;
}

PayloadVerdict check_split_blocks(const TensorView& tensor, const StreamSizes& sizes) {
  std::uint32_t block = 32, scale_bytes = 1;
  if (tensor.type == StorageType::kNVFP4) block = 16;
  if (tensor.type == StorageType::kIQ4_NL) {
    block = tensor.block_size;
    scale_bytes = 4;
    if (block == 0) return broken("its block size is 0");
  }
  auto verdict = expect("data has", sizes.data, divide_up(tensor.elements(), 2), tensor);
  if (verdict.kind == Kind::kFine)
    verdict = expect("scales have", sizes.scales, divide_up(tensor.elements(), block) * scale_bytes, tensor);
  return verdict;
}

PayloadVerdict check_tiled(const TensorView& tensor, const StreamSizes& sizes) {
  if (tensor.ndim != 2)
    return broken(fmt::format("its layout is {}, which takes a matrix; the shape is {}",
                              tile_layout_name(tensor.tile_layout), tensor.shape_text()));
  Wide stored = tensor.elements();
  if (const auto tile = tile_size(tensor.tile_layout); tile.rows != 0)
    stored = divide_up(tensor.shape[0], tile.rows) * tile.rows * divide_up(tensor.shape[1], tile.cols) * tile.cols;
  return expect("data has", sizes.data, stored * 4, tensor);
}

PayloadVerdict check_bitmask(const TensorView& tensor, const StreamSizes& sizes) {
  const std::uint64_t mask = bitmask_bytes(tensor.elements());
  if (sizes.data < mask || (sizes.data - mask) % 4 != 0 || (sizes.data - mask) / 4 > tensor.elements())
    return broken(fmt::format("its data has {} bytes; a bitmask of {} elements takes {} and then 4 for every set bit",
                              sizes.data, tensor.elements(), mask));
  return {};
}

PayloadVerdict check_2_4(const TensorView& tensor, const StreamSizes& sizes) {
  const std::uint64_t count = tensor.elements();
  if (count % 4 != 0) return broken(fmt::format("it has {} elements; 2:4 sparsity needs a multiple of 4", count));
  return expect("data has", sizes.data, Wide{index_bytes_2_4(count)} + Wide{count / 4} * 8, tensor);
}

PayloadVerdict check_block_sparse(const TensorView& tensor, const StreamSizes& sizes) {
  if (tensor.ndim != 2)
    return broken(fmt::format("its sparsity is {}, which takes a matrix; the shape is {}",
                              sparsity_name(tensor.sparsity), tensor.shape_text()));
  if (sizes.data < kBlockSparseHeadBytes)
    return broken(fmt::format("its data has {} bytes; a {} payload begins with {}", sizes.data,
                              sparsity_name(tensor.sparsity), kBlockSparseHeadBytes));
  return {};
}

PayloadVerdict check_data(const TensorView& tensor, const Format& format, const StreamSizes& sizes) {
  switch (payload_kind(tensor, sizes.scales != 0)) {
    case PayloadKind::kBlocks:
      return check_blocks(tensor, format, sizes);
    case PayloadKind::kTiled:
      return check_tiled(tensor, sizes);
    case PayloadKind::kDual:
      return check_dual(tensor, format, sizes);
    case PayloadKind::kSplitBlocks:
      return check_split_blocks(tensor, sizes);
    case PayloadKind::kBitmask:
      return check_bitmask(tensor, sizes);
    case PayloadKind::kStructured2_4:
      return check_2_4(tensor, sizes);
    case PayloadKind::kBlockSparse:
      return check_block_sparse(tensor, sizes);
    case PayloadKind::kZeros:
      if (sizes.data != 0) return broken(fmt::format("it is a null_ref and yet has {} bytes of data", sizes.data));
      return {};
    case PayloadKind::kNone:
      break;
  }
  std::string what = fmt::format("storage type {}", format.name);
  if (tensor.sparsity != Sparsity::kNone) what += fmt::format(" with sparsity {}", sparsity_name(tensor.sparsity));
  if (tensor.tile_layout != TileLayout::kRowMajor)
    what += fmt::format(" in layout {}", tile_layout_name(tensor.tile_layout));
  if (sizes.scales != 0) what += " with a scales stream";
  return unpublished(what + " has no published layout and is not supported");
}

bool takes_split_scales(StorageType type) {
  return type == StorageType::kIQ4_NL || type == StorageType::kMXFP4 || type == StorageType::kNVFP4;
}

}  // namespace

std::string_view tile_layout_name(TileLayout layout) {
  switch (layout) {
    case TileLayout::kRowMajor:
      return "row_major";
    case TileLayout::kColMajor:
      return "col_major";
    case TileLayout::kTile16x16:
      return "tile_16x16";
    case TileLayout::kTile16x8:
      return "tile_16x8";
    case TileLayout::kTile32x16:
      return "tile_32x16";
    case TileLayout::kBlockSparse2_4:
      return "block_sparse_2_4";
    case TileLayout::kTile32x32:
      return "tile_32x32";
    case TileLayout::kTile64x64:
      return "tile_64x64";
  }
  return "unknown layout";
}

std::string_view sparsity_name(Sparsity sparsity) {
  switch (sparsity) {
    case Sparsity::kNone:
      return "none";
    case Sparsity::kBitmask:
      return "bitmask";
    case Sparsity::kCsr:
      return "csr";
    case Sparsity::kStructured2_4:
      return "structured_2_4";
    case Sparsity::kPhysicalPruned:
      return "physical_pruned";
    case Sparsity::kBsr:
      return "bsr";
  }
  return "unknown sparsity";
}

TileSize tile_size(TileLayout layout) {
  switch (layout) {
    case TileLayout::kTile16x16:
      return {16, 16};
    case TileLayout::kTile16x8:
      return {16, 8};
    case TileLayout::kTile32x16:
      return {32, 16};
    case TileLayout::kTile32x32:
      return {32, 32};
    case TileLayout::kTile64x64:
      return {64, 64};
    default:
      return {};
  }
}

PayloadKind payload_kind(const TensorView& tensor, bool has_scales) {
  const auto* format = kernels::find_format(tensor.type);
  if (format == nullptr) return PayloadKind::kNone;
  const bool row_major = tensor.tile_layout == TileLayout::kRowMajor;
  const bool dense = tensor.sparsity == Sparsity::kNone;
  if (tensor.type == StorageType::kNullRef) return PayloadKind::kZeros;
  if (format->storage_class == StorageClass::kDual) return row_major && dense ? PayloadKind::kDual : PayloadKind::kNone;
  if (has_scales)
    return row_major && dense && takes_split_scales(tensor.type) ? PayloadKind::kSplitBlocks : PayloadKind::kNone;
  if (!row_major) {
    const bool tiled = tensor.tile_layout == TileLayout::kColMajor || tile_size(tensor.tile_layout).rows != 0;
    return tiled && dense && tensor.type == StorageType::kF32 ? PayloadKind::kTiled : PayloadKind::kNone;
  }
  const bool f32 = tensor.type == StorageType::kF32;
  switch (tensor.sparsity) {
    case Sparsity::kNone:
      if (tensor.type == StorageType::kSparseF16) return PayloadKind::kBitmask;
      if (tensor.type == StorageType::kSparse2_4) return PayloadKind::kStructured2_4;
      return format->decode != nullptr ? PayloadKind::kBlocks : PayloadKind::kNone;
    case Sparsity::kBitmask:
      return f32 || tensor.type == StorageType::kSparseF16 ? PayloadKind::kBitmask : PayloadKind::kNone;
    case Sparsity::kStructured2_4:
      return f32 || tensor.type == StorageType::kSparse2_4 ? PayloadKind::kStructured2_4 : PayloadKind::kNone;
    case Sparsity::kCsr:
    case Sparsity::kBsr:
      return f32 ? PayloadKind::kBlockSparse : PayloadKind::kNone;
    default:
      return PayloadKind::kNone;
  }
}

PayloadVerdict check_sizes(const TensorView& tensor, const StreamSizes& sizes) {
  const auto* format = kernels::find_format(tensor.type);
  if (format == nullptr)
    return broken(fmt::format("its storage type 0x{:02x} is unknown", static_cast<unsigned>(tensor.type)));
  if (tile_layout_name(tensor.tile_layout) == "unknown layout")
    return broken(fmt::format("its tile layout 0x{:02x} is unknown", static_cast<unsigned>(tensor.tile_layout)));
  if (sparsity_name(tensor.sparsity) == "unknown sparsity")
    return broken(fmt::format("its sparsity type 0x{:02x} is unknown", static_cast<unsigned>(tensor.sparsity)));
  if (overflows(tensor))
    return broken(fmt::format("its shape {} has more elements than can be addressed", tensor.shape_text()));
  auto verdict = check_data(tensor, *format, sizes);
  if (verdict.kind == Kind::kFine && sizes.residual != 0)
    verdict = expect("residual stream has", sizes.residual, Wide{tensor.elements()} * 4, tensor);
  return verdict;
}

}  // namespace hk::engine
