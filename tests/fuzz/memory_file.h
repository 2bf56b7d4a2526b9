// A file without a place on the disk, for readers that want a path.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace hk::fuzz {

class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (descriptor_ < 0) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void fill(const void* data, std::size_t size) const {
    if (::ftruncate(descriptor_, 0) != 0) std::abort();
    for (std::size_t done = 0; done < size;) {
      const auto written =
          ::pwrite(descriptor_, static_cast<const char*>(data) + done, size - done, static_cast<off_t>(done));
      if (written <= 0) std::abort();
      done += static_cast<std::size_t>(written);
    }
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// A promise of the code under test that does not hold is a finding like a crash.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace hk::fuzz
