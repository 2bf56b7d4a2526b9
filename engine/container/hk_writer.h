// Writes a .hk file: layout first, then payloads in any order and in pieces, then one rename.
//
// Layer: engine/container. HK-FORMAT.md. Everything is written to a nameless or temporary file beside the target; a
// full disk, an exception or a kill leaves the old target or none, never half a file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/container/atomic_file.h"
#include "engine/container/hk_header.h"
#include "engine/container/metadata_builder.h"
#include "engine/container/model_reader.h"

namespace hk::engine {

/// A tensor to be written: everything but the bytes.
struct TensorPlan {
  std::string name = {};
  StorageType type = StorageType::kF32;
  std::vector<std::uint64_t> shape = {};  ///< row-major, outermost first
  std::uint64_t data_size = 0;
  std::uint64_t scale_size = 0;     ///< 0: no such stream
  std::uint64_t residual_size = 0;  ///< 0: no such stream
  TileLayout tile_layout = TileLayout::kRowMajor;
  Sparsity sparsity = Sparsity::kNone;
  std::uint32_t block_size = 32;
  float sparsity_ratio = 0;
  std::string shared_with = {};  ///< kSharedRef: name of an earlier tensor; sizes are taken from it
};

class HkWriter {
 public:
  struct Options {
    std::uint32_t alignment = 128;  ///< 1..65535: what the header's u16 holds
    std::uint32_t split_index = 0;
    std::uint32_t split_count = 1;
  };
  enum class Stream : std::uint8_t { kData, kScales, kResidual };

  /// Checks the plans (names, shapes, sizes), lays the file out, reserves the disk space and writes header and tables.
  /// Throws hk::Error; kResource when the disk is full.
  HkWriter(const std::string& path, const Options& options, const MetadataBuilder& metadata,
           std::vector<TensorPlan> tensors);

  /// Writes a piece of a stream at `offset` in it. Pieces may come in any order and from several threads.
  void write(std::size_t tensor, Stream stream, std::uint64_t offset, std::span<const std::byte> bytes);
  void write_data(std::size_t tensor, std::span<const std::byte> bytes) { write(tensor, Stream::kData, 0, bytes); }

  /// Throws when a stream was not written in full; then syncs and renames. Until here the target is untouched.
  void finish();
  /// The two halves of finish(), so that the members of a set are renamed together.
  void sync();
  void commit();

  std::uint64_t file_size() const { return size_; }
  std::uint64_t payload_size() const { return payload_size_; }  ///< bytes that write() has to deliver
  const HkHeader& header() const { return header_; }

 private:
  struct Part {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
    std::atomic<std::uint64_t> written = 0;
  };
  struct Placed {
    Part parts[3];
  };

  void check(const Options& options) const;
  void place(const MetadataBuilder& metadata);
  std::vector<std::byte> table() const;

  std::string path_;
  std::vector<TensorPlan> plans_;
  std::unique_ptr<Placed[]> placed_;
  HkHeader header_;
  std::uint64_t size_ = 0;
  std::uint64_t payload_size_ = 0;
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace hk::engine
