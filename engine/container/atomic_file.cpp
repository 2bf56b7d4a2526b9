// Files that appear all at once: nameless where possible, else under a temporary name.
#include "engine/container/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/write_all.h"

namespace hk::engine {
namespace {

constexpr std::size_t kCopyBuffer = std::size_t{1} << 20;  // where the kernel cannot copy by itself

ErrorKind kind_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
      return ErrorKind::kResource;
    default:
      return ErrorKind::kInput;
  }
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Where a chain of symbolic links ends; the path itself when it does not exist yet.
std::string resolve(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real == nullptr ? path : real.get();
}

bool can_link_descriptors() { return ::access("/proc/self/fd", X_OK) == 0; }

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path), target_(resolve(path)) {
  if (path_.empty()) throw Error("the name of the file to write is empty", ErrorKind::kUsage);
  struct stat old {};
  const bool replaces = ::stat(target_.c_str(), &old) == 0;
  // A rename over a device or pipe would replace it, which nobody means.
  if (replaces && !S_ISREG(old.st_mode))
    throw Error(fmt::format("cannot write {}: it exists and is not a regular file", path_));
  constexpr ::mode_t kNewFileMode = 0666;  // less the umask
  if (can_link_descriptors())
    descriptor_ = ::open(folder_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kNewFileMode);
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = fmt::format("{}.tmp-{}-{}", target_, ::getpid(), attempt);
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == 100)) {
      const int error = errno;
      temporary_.clear();
      fail("create", error);
    }
  }
  if (replaces) {
    // Best effort: a file that its owner shares keeps its rights; failing to is no reason not to write.
    (void)!::fchown(descriptor_, old.st_uid, old.st_gid);
    (void)::fchmod(descriptor_, old.st_mode & 07777);
  }
}

AtomicFile::~AtomicFile() {
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what, int error) const {
  throw Error(fmt::format("cannot {} {}: {}", what, path_, std::strerror(error)), kind_of(error));
}

/// False when the file system cannot reserve.
bool AtomicFile::take_space(std::uint64_t size) {
  if (size > static_cast<std::uint64_t>(std::numeric_limits<::off_t>::max())) fail("write", EFBIG);
  int result = 0;
  do {
    result = ::fallocate(descriptor_, 0, 0, static_cast<::off_t>(size)) == 0 ? 0 : errno;
  } while (result == EINTR);
  if (result == ENOSPC || result == EDQUOT || result == EFBIG) fail("write", result);
  return result == 0;
}

void AtomicFile::reserve(std::uint64_t size) {
  // Where space cannot be reserved a full disk shows at the write that does not fit.
  if (size != 0 && !take_space(size) && ::ftruncate(descriptor_, static_cast<::off_t>(size)) != 0) fail("write", errno);
}

std::span<std::byte> AtomicFile::map(std::uint64_t size) {
  if (size == 0) return {};
  if (!take_space(size)) {
    // A full disk behind a mapping is a signal, not an error code: the space is taken by writing it.
    const std::vector<std::byte> zeros(kCopyBuffer);
    for (std::uint64_t at = 0; at < size; at += zeros.size())
      write(at, std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), size - at)));
  }
  void* mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapped == MAP_FAILED) fail("map", errno);
  mapping_ = {static_cast<std::byte*>(mapped), size};
  return mapping_;
}

void AtomicFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (write_all_at(descriptor_, offset, bytes) < bytes.size()) fail("write", errno);
}

void AtomicFile::copy(int from, std::uint64_t from_offset, std::uint64_t size, std::uint64_t to_offset) {
  std::vector<std::byte> buffer;
  while (size > 0) {
    if (buffer.empty()) {
      auto source = static_cast<::off_t>(from_offset);
      auto target = static_cast<::off_t>(to_offset);
      constexpr std::uint64_t kMostAtOnce = std::uint64_t{1} << 30;
      const auto copied = ::copy_file_range(from, &source, descriptor_, &target, std::min(size, kMostAtOnce), 0);
      if (copied < 0 && errno == EINTR) continue;
      if (copied > 0) {
        const auto step = static_cast<std::uint64_t>(copied);
        from_offset += step, to_offset += step, size -= step;
        continue;
      }
      if (copied < 0 && kind_of(errno) == ErrorKind::kResource) fail("write", errno);
      buffer.resize(kCopyBuffer);  // this file system cannot; by hand from here on
    }
    const auto wanted = std::min<std::uint64_t>(size, buffer.size());
    const auto got = ::pread(from, buffer.data(), wanted, static_cast<::off_t>(from_offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read what is to be copied to", errno);
    if (got == 0)
      throw Error(fmt::format("cannot write {}: the file it is copied from became shorter meanwhile", path_));
    const auto step = static_cast<std::uint64_t>(got);
    write(to_offset, std::span(buffer).first(step));
    from_offset += step, to_offset += step, size -= step;
  }
}

void AtomicFile::sync() {
  if (::fsync(descriptor_) != 0) fail("write", errno);
}

void AtomicFile::give_name() {
  const auto source = fmt::format("/proc/self/fd/{}", descriptor_);
  for (int attempt = 0;; ++attempt) {
    const auto name = fmt::format("{}.tmp-{}-{}", target_, ::getpid(), attempt);
    if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST || attempt == 100) fail("create", errno);
  }
}

void AtomicFile::commit() {
  if (temporary_.empty()) give_name();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("replace", errno);
  temporary_.clear();
  // The rename itself must reach the disk too. A folder that cannot be synced is no reason to fail: the file is there.
  const int folder = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)::fsync(folder);
    ::close(folder);
  }
}

}  // namespace hk::engine
