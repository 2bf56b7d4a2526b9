// How many bytes a tensor's streams must have, and whether what lies in them hangs together.
//
// Layer: engine/container. The one place that knows the rules of HK-FORMAT-NOTES.md ("Storage-only payloads") about
// sizes; the reader, the writer, the decoder and `verify` all ask here.
#pragma once

#include <cstdint>
#include <string>

#include "engine/container/model_reader.h"

namespace hk::engine {

struct StreamSizes {
  std::uint64_t data = 0;
  std::uint64_t scales = 0;
  std::uint64_t residual = 0;
};

struct PayloadVerdict {
  enum class Kind {
    kFine,
    kUnpublished,  ///< storable, but nobody has published how it is laid out: listed, copied, never decoded
    kBroken,
  };
  Kind kind = Kind::kFine;
  std::string why;  ///< "" when fine; else a clause without file and tensor name
};

/// Checks type, layout, sparsity and block size against shape and sizes. Looks at no payload byte.
PayloadVerdict check_sizes(const TensorView& tensor, const StreamSizes& sizes);

/// Checks what the payload says about itself: row pointers, block columns, number of values, codes without a meaning.
/// "" when it hangs together. Reads tables and codes; only for tensors whose sizes are fine.
std::string check_contents(const TensorView& tensor);

/// Elements of a tile of `layout`; {0, 0} for layouts that are not tiled.
struct TileSize {
  std::uint32_t rows = 0;
  std::uint32_t cols = 0;
};
TileSize tile_size(TileLayout layout);

std::string_view tile_layout_name(TileLayout layout);  ///< as in HK-FORMAT.md; "unknown layout" for others
std::string_view sparsity_name(Sparsity sparsity);     ///< the same

/// Which decoder a tensor's payload needs.
enum class PayloadKind {
  kBlocks,       ///< dense elements or GGUF blocks
  kTiled,        ///< f32 in tiles, or transposed
  kDual,         ///< dq4, dq8, dqt
  kSplitBlocks,  ///< iq4_nl, mxfp4, nvfp4 with the scales apart
  kBitmask,
  kStructured2_4,
  kBlockSparse,  ///< csr, bsr
  kZeros,        ///< null_ref
  kNone,         ///< cannot be decoded
};
PayloadKind payload_kind(const TensorView& tensor, bool has_scales);

/// Byte offsets in the payloads of sparse tensors.
constexpr std::uint64_t bitmask_bytes(std::uint64_t elements) {
  const std::uint64_t bytes = elements / 8 + (elements % 8 != 0);
  return (bytes + 3) / 4 * 4;
}
constexpr std::uint64_t index_bytes_2_4(std::uint64_t elements) {
  const std::uint64_t groups = elements / 4;
  return ((groups + 1) / 2 + 3) / 4 * 4;
}

/// Head of a csr or bsr payload, checked by check_contents.
struct BlockSparseHead {
  std::uint32_t block_rows = 0;
  std::uint32_t block_cols = 0;
  std::uint32_t row_pointers = 0;
  std::uint32_t blocks = 0;
  const std::byte* row_pointer = nullptr;   ///< u32[row_pointers]
  const std::byte* block_column = nullptr;  ///< u32[blocks]
  const std::byte* values = nullptr;        ///< f32[blocks][block_rows][block_cols]
};
inline constexpr std::size_t kBlockSparseHeadBytes = 12;
BlockSparseHead read_block_sparse_head(std::span<const std::byte> data);

}  // namespace hk::engine
