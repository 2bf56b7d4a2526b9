// What every model file looks like from above: metadata and tensors as views into a mapping, whatever the container.
//
// Layer: engine/container. HKReader (hk_reader.h) and GGUFReader (gguf_reader.h) implement it; `open_model` picks by
// magic. Everything handed out was bounds-checked when the file was opened and lives as long as the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/metadata.h"
#include "kernels/quant/format.h"

namespace hk::engine {

using kernels::StorageType;

class MappedFile;

/// HK-FORMAT.md section 6; raw values, unknown ones are listed and refused only when used.
enum class TileLayout : std::uint8_t {
  kRowMajor = 0,
  kColMajor = 1,
  kTile16x16 = 2,
  kTile16x8 = 3,
  kTile32x16 = 4,
  kBlockSparse2_4 = 5,
  kTile32x32 = 6,
  kTile64x64 = 7,
};

/// HK-FORMAT.md section 7.
enum class Sparsity : std::uint8_t {
  kNone = 0,
  kBitmask = 1,
  kCsr = 2,
  kStructured2_4 = 3,
  kPhysicalPruned = 4,
  kBsr = 5,
};

inline constexpr std::size_t kMaxDims = 8;  // HK-FORMAT.md section 4
inline constexpr std::size_t kMaxNameBytes = 128;

/// One tensor. Shapes are row-major, outermost first: a matrix is [rows = outputs, cols = inputs].
struct TensorView {
  std::string_view name;
  StorageType type = StorageType::kF32;
  TileLayout tile_layout = TileLayout::kRowMajor;
  Sparsity sparsity = Sparsity::kNone;
  std::uint32_t ndim = 0;
  std::uint64_t shape[kMaxDims] = {};
  std::span<const std::byte> data;      ///< payload in the mapping
  std::span<const std::byte> scales;    ///< empty when none
  std::span<const std::byte> residual;  ///< empty when none
  std::uint32_t block_size = 32;
  float sparsity_ratio = 0;
  std::uint64_t file_offset = 0;  ///< of `data`, for listings
  std::uint32_t shard = 0;        ///< index of the file the payload lies in
  /// A shared_ref (tied weights): name of the tensor it shares its payload with, else "". Type, layout and sparsity
  /// above are then the target's, so that users need not care.
  std::string_view shared_with;
  /// Why the entry cannot be used, "" when it can: unknown type, layout or sparsity, sizes that contradict the shape,
  /// dangling shared reference. A reader lists such a tensor; whoever uses it throws hk::Error with this sentence.
  std::string problem;

  std::uint64_t elements() const;  ///< product of the shape (checked not to overflow at open)
  std::uint64_t cols() const { return ndim == 0 ? 1 : shape[ndim - 1]; }
  std::uint64_t rows() const { return cols() == 0 ? 0 : elements() / cols(); }
  std::string shape_text() const;  ///< "[2048, 256]"
};

class ModelReader {
 public:
  virtual ~ModelReader() = default;

  virtual const std::string& path() const = 0;     ///< as given by the user
  virtual std::string_view container() const = 0;  ///< "hk" or "gguf"
  virtual const Metadata& metadata() const = 0;
  virtual std::span<const TensorView> tensors() const = 0;  ///< file order, all shards
  virtual std::uint64_t mapped_bytes() const = 0;
  /// The files that everything handed out points into; none for a reader that has none of its own.
  virtual std::vector<MappedFile*> mapped_files() { return {}; }
  /// Things worth telling that are not errors (ignored flags, odd but legal fields), one sentence each.
  virtual std::span<const std::string> remarks() const = 0;

  /// Null when there is no such tensor. Hashed, O(1).
  const TensorView* find(std::string_view name) const;

 protected:
  void index_tensors();  ///< implementations call this once after tensors() is filled

 private:
  struct Slot {
    std::uint64_t hash;
    std::uint32_t index;
  };
  std::vector<Slot> index_;
};

/// Opens a .hk file (any shard of a set, or the index .json) or a .gguf file (any split) by its magic. Throws
/// hk::Error.
std::unique_ptr<ModelReader> open_model(const std::string& path);

/// Decodes a tensor of any storable type to row-major f32 (HK-FORMAT-NOTES.md, "Storage-only payloads").
/// `out` must hold elements() floats. Throws hk::Error naming tensor and type for what has no published layout or is
/// broken.
void dequantize_to_f32(const ModelReader& reader, const TensorView& tensor, bool with_residual, std::span<float> out);

}  // namespace hk::engine
