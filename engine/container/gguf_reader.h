// A GGUF model (version 2 or 3, one file or a set of splits) opened in place as a ModelReader.
//
// Layer: engine/container. Tensor payloads are views into the mapping; metadata is re-encoded once (gguf_metadata.h);
// shapes are turned to row-major. Everything is checked at open: a file that opens can be read anywhere without further
// checks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/mapped_file.h"
#include "engine/container/model_reader.h"

namespace hk::engine {

class GgufReader : public ModelReader {
 public:
  /// Opens any member of a set of splits as the whole model. Throws hk::Error naming file, key or tensor.
  explicit GgufReader(const std::string& path);

  const std::string& path() const override { return path_; }
  std::string_view container() const override { return "gguf"; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorView> tensors() const override { return tensors_; }
  std::uint64_t mapped_bytes() const override;
  std::vector<MappedFile*> mapped_files() override;
  std::span<const std::string> remarks() const override { return remarks_; }

  std::uint32_t version() const { return version_; }      ///< 2 or 3
  std::uint64_t alignment() const { return alignment_; }  ///< general.alignment of the first file, else 32
  const std::vector<std::unique_ptr<MappedFile>>& files() const { return files_; }

 private:
  void open_splits(std::uint32_t index, std::uint32_t count);

  std::string path_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  Metadata metadata_;
  std::vector<TensorView> tensors_;
  std::vector<std::string> remarks_;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 0;
};

std::unique_ptr<ModelReader> open_gguf(const std::string& path);

}  // namespace hk::engine
