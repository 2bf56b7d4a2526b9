// A whole file mapped read-only: open, check, map, bring into memory, unmap.
#include "engine/container/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/memory_text.h"
#include "engine/container/mapping_guard.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14; older kernels refuse it and pages are touched by hand
#endif

namespace hk::engine {
namespace {

// Addresses begin where a huge page of x86 and Arm does, so that the system may use such pages for a file or its copy.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Closes the descriptor on every way out; a mapping outlives it.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

std::size_t page_size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
std::size_t whole_pages(std::size_t size) { return (size + page_size() - 1) / page_size() * page_size(); }

/// Address space for `size` bytes, on a boundary of kHugePage when it can be had; null with errno when it cannot.
std::byte* reserve_addresses(std::size_t size) {
  const std::size_t kept = whole_pages(size);
  const std::size_t more = kept < kHugePage ? kept : kept + kHugePage;
  void* all = ::mmap(nullptr, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(all);
  if (more == kept) return begin;
  const std::size_t skip = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (skip != 0) ::munmap(begin, skip);
  if (skip != kHugePage) ::munmap(begin + skip + kept, kHugePage - skip);
  return begin + skip;
}

/// The whole pages around [offset, offset + size) of a mapping of `all` bytes.
std::pair<std::size_t, std::size_t> page_range(std::size_t offset, std::size_t size, std::size_t all) {
  const std::size_t begin = std::min(offset, all);
  const std::size_t end = begin + std::min(size, all - begin);
  const std::size_t first = begin / page_size() * page_size();
  return {first, whole_pages(end) - first};
}

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
  std::byte* place = reserve_addresses(size_);
  const auto fail = [&] {
    throw Error(fmt::format("cannot map {} ({} bytes): {}", path, size_, std::strerror(errno)),
                errno == ENOMEM ? ErrorKind::kResource : ErrorKind::kInput);
  };
  if (place == nullptr) fail();
  if (::mmap(place, size_, PROT_READ, MAP_SHARED | MAP_FIXED, file.value, 0) == MAP_FAILED) {
    const int reason = errno;
    ::munmap(place, whole_pages(size_));
    errno = reason;
    fail();
  }
  data_ = place;
  guard_mapping(bytes(), path.c_str());
}

MappedFile::~MappedFile() {
  if (copy_ != nullptr) ::munmap(copy_, whole_pages(size_));
  if (data_ == nullptr) return;
  unguard_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      copy_(std::exchange(other.copy_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(copy_, other.copy_);
  return *this;
}

double MappedFile::cached_part() const {
  // Enough to tell a cached file from one that was dropped or never read, at a few microseconds.
  constexpr std::size_t kSamples = 256, kPages = 16;
  const std::size_t page = page_size(), pages = whole_pages(size_) / page;
  if (pages == 0) return 1;
  const std::size_t step = std::max<std::size_t>(kPages, pages / kSamples);
  std::size_t seen = 0, cached = 0;
  unsigned char there[kPages];
  for (std::size_t first = 0; first < pages; first += step) {
    const std::size_t count = std::min(kPages, pages - first);
    if (::mincore(const_cast<std::byte*>(data_) + first * page, count * page, there) != 0) return 1;
    seen += count;
    cached += static_cast<std::size_t>(std::count_if(there, there + count, [](unsigned char c) { return c & 1; }));
  }
  return static_cast<double>(cached) / static_cast<double>(seen);
}

void MappedFile::prefer_huge_pages() const {
  // Measured on a virtual machine, one core: decoding from huge pages is 1.4 times as fast (docs/memory.md). A stream
  // of weights meets a new small page every 4 KiB, and each costs a walk through page tables of guest and host.
  if (size_ != 0) ::madvise(const_cast<std::byte*>(data_), size_, MADV_HUGEPAGE);
}

void MappedFile::read_ahead(std::size_t offset, std::size_t size) const {
  const auto [first, length] = page_range(offset, size, size_);
  if (length == 0) return;
  auto* begin = const_cast<std::byte*>(data_) + first;
  // Not MADV_WILLNEED before it: that asks the disk for all at once, but fills the cache with small pages.
  if (::madvise(begin, length, MADV_POPULATE_READ) == 0 || errno == EFAULT) {
    // A page that cannot be read is told by the guard when it is needed.
    return;
  }
  for (std::size_t at = 0; at < length && first + at < size_; at += page_size())
    static_cast<void>(*static_cast<const volatile std::byte*>(begin + at));
}

void MappedFile::lock(std::size_t offset, std::size_t size) const {
  const auto [first, length] = page_range(offset, size, size_);
  if (length == 0 || ::mlock(data_ + first, length) == 0) return;
  const int reason = errno;
  struct rlimit limit {};
  const bool limited = ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (limited && (reason == ENOMEM || reason == EPERM || reason == EAGAIN))
    throw Error(fmt::format("{} cannot be locked in memory: it has {}, and this process may lock {}; raise the limit "
                            "(ulimit -l, RLIMIT_MEMLOCK) or use --load read, or mmap",
                            path_, memory_text(size_), memory_text(limit.rlim_cur)),
                ErrorKind::kResource);
  throw Error(fmt::format("{} cannot be locked in memory ({}): {}", path_, memory_text(size_), std::strerror(reason)),
              ErrorKind::kResource);
}

void MappedFile::begin_copy() {
  if (size_ == 0 || copy_ != nullptr) return;
  std::byte* place = reserve_addresses(size_);
  if (place == nullptr || ::mmap(place, whole_pages(size_), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
    const int reason = errno;
    if (place != nullptr) ::munmap(place, whole_pages(size_));
    throw Error(fmt::format("not enough memory to read {} into: {} were asked for ({})", path_, memory_text(size_),
                            std::strerror(reason)),
                ErrorKind::kResource);
  }
  copy_ = place;
  ::madvise(copy_, whole_pages(size_), MADV_HUGEPAGE);  // where it is not known, small pages do
}

void MappedFile::copy_part(std::size_t offset, std::size_t size) const {
  if (copy_ == nullptr || offset >= size_) return;
  size = std::min(size, size_ - offset);
  std::memcpy(copy_ + offset, data_ + offset, size);
}

void MappedFile::finish_copy() {
  if (copy_ == nullptr) return;
  ::mprotect(copy_, whole_pages(size_), PROT_READ);
  // Moves page tables, not bytes, and drops the mapping of the file in the same step.
  if (::mremap(copy_, whole_pages(size_), whole_pages(size_), MREMAP_MAYMOVE | MREMAP_FIXED,
               const_cast<std::byte*>(data_)) == MAP_FAILED)
    throw Error(
        fmt::format("cannot put the content of {} in the place of its mapping: {}", path_, std::strerror(errno)),
        ErrorKind::kResource);
  copy_ = nullptr;
  unguard_mapping(data_);
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) & ~(page - 1);
  const auto last = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) & ~(page - 1);
  // Whole pages only: what shares a page with others stays. Failure costs memory, not correctness.
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace hk::engine
