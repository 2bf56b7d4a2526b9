// Zeroed memory straight from the system, which hands it out as it is touched; on huge pages if asked for.
//
// Layer: engine/runtime. For state that grows in large pieces: what is given back returns to the system at once, and
// pieces of whole huge pages begin on one. Buffers of a pass are AlignedBuffers.
#pragma once

#include <cstddef>

namespace hk::engine {

class ZeroedMemory {
 public:
  enum class Pages { kSmall, kHuge };
  /// Starts on a page, with kHuge on a huge one, of which only whole ones are used: the rest of `bytes` lies on small
  /// pages. A failure is hk::Error of kind kResource; `purpose` ends the sentence "not enough memory for ...".
  ZeroedMemory(std::size_t bytes, Pages pages, const char* purpose);
  ~ZeroedMemory();
  ZeroedMemory(const ZeroedMemory&) = delete;
  ZeroedMemory& operator=(const ZeroedMemory&) = delete;

  std::byte* data() { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hk::engine
