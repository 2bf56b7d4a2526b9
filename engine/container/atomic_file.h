// A file that appears all at once: written without a name, synced, then renamed over the target.
//
// Layer: engine/container. A full disk, an exception or a kill leaves the old target or none. Where the file system
// can, the file has no name until it is complete, so that not even a kill leaves a temporary one behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hk::engine {

class AtomicFile {
 public:
  /// A symbolic link is followed: the file it points to is replaced. Throws hk::Error naming the file.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Makes the file `size` bytes long and takes the disk space now, so that a full disk is told before the work.
  void reserve(std::uint64_t size);
  /// Reserves `size` bytes for certain and maps them, for work that fills a large file without holding it in private
  /// memory. Valid until destruction.
  std::span<std::byte> map(std::uint64_t size);
  /// Safe from several threads.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Copies `size` bytes of another open file, by reference where the file system can.
  void copy(int from, std::uint64_t from_offset, std::uint64_t size, std::uint64_t to_offset);
  /// Everything so far to the disk.
  void sync();
  /// Renames over the target and syncs the folder. Call sync() before.
  void commit();

  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

 private:
  bool take_space(std::uint64_t size);
  void give_name();
  [[noreturn]] void fail(const char* what, int error) const;

  std::string path_;       // as given, for messages
  std::string target_;     // links resolved
  std::string temporary_;  // "" while nameless
  int descriptor_ = -1;
  std::span<std::byte> mapping_;
};

}  // namespace hk::engine
