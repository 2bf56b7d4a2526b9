// Changing a .hk file in place: lock, checks, and the few writes there are.
#include "engine/container/hk_edit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/write_all.h"

namespace hk::engine {
namespace {

bool is_same_file(int descriptor, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

}  // namespace

HkEdit::HkEdit(const std::string& path) {
  {
    // Says what is wrong with a file that is no .hk before anything is opened for writing, and finds shard 0 of an
    // index.
    const HkReader probe(path, HkReader::Members::kThisFile);
    path_ = probe.files()[0].path();
  }
  try {
    open(path_);
    reader_ = std::make_unique<HkReader>(path_, HkReader::Members::kThisFile);
  } catch (...) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

HkEdit::~HkEdit() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void HkEdit::open(const std::string& path) {
  // An editor that replaces the file leaves those who waited for the lock with the old one: look again then.
  do {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor_ < 0) throw Error(fmt::format("cannot open {} for writing: {}", path, std::strerror(errno)));
    while (::flock(descriptor_, LOCK_EX) != 0)
      if (errno != EINTR) break;  // a file system without locks: editing is still possible, just not twice at once
  } while (!is_same_file(descriptor_, path));
}

void HkEdit::fail(int error) const {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  throw Error(fmt::format("cannot change {}: {}", path_, std::strerror(error)),
              full ? ErrorKind::kResource : ErrorKind::kInput);
}

std::uint64_t HkEdit::base_end() const {
  const auto& head = header();
  std::uint64_t end = std::max<std::uint64_t>(kHkHeaderBytes, head.tensor_toc_offset + head.tensor_toc_size);
  end = std::max(end, head.metadata_offset + head.metadata_size);
  const auto* start = file().bytes().data();
  for (const auto& tensor : reader_->tensors())
    for (const auto& stream : {tensor.data, tensor.scales, tensor.residual})
      if (!stream.empty()) end = std::max(end, static_cast<std::uint64_t>(stream.data() - start) + stream.size());
  return end;
}

void HkEdit::require_appendix_last() const {
  const auto offset = header().appendix_offset;
  if (offset == 0) return;
  if (offset < kHkHeaderBytes || offset > size())
    throw Error(fmt::format("{}: the appendix offset {} lies outside the file's {} bytes or in its header", path_,
                            offset, size()));
  if (const auto end = base_end(); end > offset)
    throw Error(
        fmt::format("{}: the appendix begins at {}, but tables or payloads reach to {}; the file cannot be changed "
                    "without breaking one of them",
                    path_, offset, end));
}

void HkEdit::append(std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto old_size = size();
  const auto undo_and_fail = [&](int error) {
    (void)!::ftruncate(descriptor_, static_cast<::off_t>(old_size));
    fail(error);
  };
  if (write_all_at(descriptor_, offset, bytes) < bytes.size()) undo_and_fail(errno);
  if (::fsync(descriptor_) != 0) undo_and_fail(errno);
}

void HkEdit::write_header(const HkHeader& header) {
  // 128 bytes at the start of the file: one page in memory and one sector on disk, so nobody sees half of them.
  const auto bytes = encode_hk_header(header);
  const auto written = ::pwrite(descriptor_, bytes.data(), bytes.size(), 0);
  if (written != static_cast<::ssize_t>(bytes.size())) fail(written < 0 ? errno : EIO);
  if (::fsync(descriptor_) != 0) fail(errno);
}

void HkEdit::truncate(std::uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<::off_t>(size)) != 0 || ::fsync(descriptor_) != 0) fail(errno);
}

void HkEdit::copy_to(AtomicFile& copy, std::uint64_t from, std::uint64_t size, std::uint64_t to) const {
  copy.copy(descriptor_, from, size, to);
}

}  // namespace hk::engine
