// A .hk file opened to be changed in place: locked, read, and written by steps of which each leaves a valid file.
//
// Layer: engine/container. Used by the appendix and the metadata editor. What publishes a change is one write of the
// header, one growth or one cut of the file; everything before that goes where no reader looks.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/container/atomic_file.h"
#include "engine/container/hk_reader.h"

namespace hk::engine {

class HkEdit {
 public:
  /// Waits for other editors of the same file. A member of a set is opened alone; the index json stands for shard 0.
  explicit HkEdit(const std::string& path);
  ~HkEdit();
  HkEdit(const HkEdit&) = delete;
  HkEdit& operator=(const HkEdit&) = delete;

  const HkReader& reader() const { return *reader_; }
  const HkFile& file() const { return reader_->files()[0]; }
  const HkHeader& header() const { return file().header; }
  std::uint64_t size() const { return file().bytes().size(); }

  /// Throws when tables or payloads lie behind the appendix offset (or the offset outside the file), because then
  /// records can neither move nor grow.
  void require_appendix_last() const;
  /// First byte behind header, tables and payloads.
  std::uint64_t base_end() const;

  /// Writes behind the file's end and syncs; the file shrinks back when that fails.
  void append(std::uint64_t offset, std::span<const std::byte> bytes);
  /// One write, one sync.
  void write_header(const HkHeader& header);
  void truncate(std::uint64_t size);
  /// Part of the file into another one that will replace it.
  void copy_to(AtomicFile& copy, std::uint64_t from, std::uint64_t size, std::uint64_t to) const;

 private:
  void open(const std::string& path);
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int descriptor_ = -1;
  std::unique_ptr<HkReader> reader_;
};

constexpr std::uint64_t align_up_8(std::uint64_t offset) { return (offset + 7) / 8 * 8; }

}  // namespace hk::engine
