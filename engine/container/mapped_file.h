// A whole file mapped read-only into memory.
//
// Layer: engine/container. Owns the mapping, knows nothing of what is inside. Weights stay where the kernel's page
// cache has them; nothing is read until somebody looks. Who wants the content in memory of its own or locked there asks
// for it part by part, from as many threads as it likes; the bytes keep their addresses.
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

  /// Part of the file that lies in the page cache, from samples spread over it, between 0 and 1. 1 also when the system
  /// does not tell: it tells only the owner of a file and who may write to it.
  double cached_part() const;
  /// From now on what is not in the page cache yet is read into huge pages where the system can. They stay there for
  /// whoever maps the file next. For a file that will be read as a whole: every look reads a huge page.
  void prefer_huge_pages() const;
  /// Reads [offset, offset + size) into the page cache and maps it, so that nobody waits for it later.
  void read_ahead(std::size_t offset, std::size_t size) const;
  /// Keeps these bytes in memory. Throws hk::Error (kResource) with what the system allows.
  void lock(std::size_t offset, std::size_t size) const;

  /// Copies the file into private memory that takes the mapping's place: begin, copy_part for every part (any order,
  /// any thread), finish. Until finish the mapping is as it was. Throws hk::Error (kResource) without the memory.
  void begin_copy();
  void copy_part(std::size_t offset, std::size_t size) const;
  void finish_copy();

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::byte* copy_ = nullptr;  // between begin_copy and finish_copy
};

/// Tells the system that these bytes of a mapping were read and will not be soon again, so that walking through a large
/// file does not fill memory. They stay readable. Only for bytes of a MappedFile that was not copied.
void release_pages(std::span<const std::byte> bytes);

}  // namespace hk::engine
