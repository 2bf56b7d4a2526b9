// A whole file mapped read-only: open, check, map, unmap.
#include "engine/container/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "engine/container/mapping_guard.h"

namespace hk::engine {
namespace {

/// Closes the descriptor on every way out; a mapping outlives it.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a named pipe must not wait for its writer before it is refused below.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.value < 0) throw Error(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  struct stat status {};
  if (::fstat(file.value, &status) != 0) throw Error(fmt::format("cannot examine {}: {}", path, std::strerror(errno)));
  if (S_ISDIR(status.st_mode)) throw Error(fmt::format("{} is a folder; a model file was expected", path));
  if (!S_ISREG(status.st_mode))
    throw Error(fmt::format("{} is not a regular file; a model is mapped into memory and needs one", path));
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.value, 0);
  if (mapping == MAP_FAILED)
    throw Error(fmt::format("cannot map {} ({} bytes): {}", path, size_, std::strerror(errno)),
                errno == ENOMEM ? ErrorKind::kResource : ErrorKind::kInput);
  data_ = static_cast<const std::byte*>(mapping);
  guard_mapping(bytes(), path.c_str());
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  unguard_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) & ~(page - 1);
  const auto last = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) & ~(page - 1);
  // Whole pages only: what shares a page with others stays. Failure costs memory, not correctness.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace hk::engine
