// A whole file mapped read-only into memory.
//
// Layer: engine/container. Owns the mapping, knows nothing of what is inside. Weights stay where the kernel's page
// cache has them; nothing is read until somebody looks.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace hk::engine {

class MappedFile {
 public:
  /// Throws hk::Error naming `path` when it cannot be opened, is no regular file, or cannot be mapped. An empty file
  /// maps to no bytes.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Tells the system that these bytes of a mapping were read and will not be soon again, so that walking through a large
/// file does not fill memory. They stay readable. Only for bytes of a MappedFile.
void release_pages(std::span<const std::byte> bytes);

}  // namespace hk::engine
