// A .hk model (one file or a set of shards) opened in place as a ModelReader.
//
// Layer: engine/container. HK-FORMAT.md. Sections are found by the header's offsets, never by layout. A file that is no
// .hk file, or whose tables cannot be walked, is refused at open; a tensor that cannot be used is listed with its
// problem.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/hk_header.h"
#include "engine/container/hk_index.h"
#include "engine/container/mapped_file.h"
#include "engine/container/model_reader.h"

namespace hk::engine {

/// One file of the model.
struct HkFile {
  std::unique_ptr<MappedFile> mapping;
  HkHeader header;
  Metadata metadata;

  const std::string& path() const { return mapping->path(); }
  std::span<const std::byte> bytes() const { return mapping->bytes(); }
};

class HkReader : public ModelReader {
 public:
  enum class Members {
    kAll,       ///< the whole model, whichever member of a set was named
    kThisFile,  ///< only the file named: for tools that edit one
  };

  /// Opens a .hk file, any shard of a set, or the set's index json. Throws hk::Error naming file, key or tensor.
  explicit HkReader(const std::string& path, Members members = Members::kAll);

  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "hk"; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  std::uint64_t mapped_bytes() const override;
  std::vector<MappedFile*> mapped_files() override;
  std::span<const std::string> remarks() const override { return remarks_; }

  /// In the order of the shards; TensorView::shard indexes it.
  const std::vector<HkFile>& files() const { return files_; }
  const HkHeader& header(std::size_t file = 0) const { return files_[file].header; }
  /// The remarks that say something is wrong, though the model can be read.
  const std::vector<std::string>& faults() const { return faults_; }
  /// What the index json says that the shards do not bear out, one sentence each; empty when opened without one.
  const std::vector<std::string>& index_problems() const { return index_problems_; }

 private:
  void open_file(const std::string& path);
  void open_set(const std::string& first_path);
  void open_index(const HkIndex& index, Members members);
  void read_tensors(std::uint32_t shard);
  void merge_metadata();
  void compare_index(const HkIndex& index);
  void note_header(const HkFile& file);
  void note_unused(std::string_view section_name, std::size_t bytes, const HkFile& file);
  void fault(std::string text);

  std::string path_;
  std::vector<HkFile> files_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::vector<std::string> remarks_;
  std::vector<std::string> faults_;
  std::vector<std::string> index_problems_;
};

std::unique_ptr<ModelReader> open_hk(const std::string& path);

}  // namespace hk::engine
