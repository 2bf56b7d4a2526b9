// Zeroed memory from the system (see zeroed_memory.h).
#include "engine/runtime/zeroed_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdint>
#include <limits>

#include "base/error.h"
#include "engine/runtime/memory.h"

namespace hk::engine {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;  // of x86 and most ARM systems; elsewhere merely a start

}  // namespace

ZeroedMemory::ZeroedMemory(std::size_t bytes, Pages pages, const char* purpose) : size_(bytes) {
  if (bytes == 0) return;
  // Room to begin on a huge page; what lies before and behind goes back.
  const std::size_t room = pages == Pages::kHuge ? kHugePage : 0;
  void* all = MAP_FAILED;
  if (bytes <= std::numeric_limits<std::size_t>::max() - room)
    all = ::mmap(nullptr, bytes + room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED)
    throw Error(fmt::format("not enough memory for {}: {} bytes could not be taken", purpose, bytes),
                ErrorKind::kResource);
  data_ = static_cast<std::byte*>(all);
  if (room == 0) return;
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(all) % kHugePage) % kHugePage;
  if (before != 0) ::munmap(all, before);
  data_ += before;
  constexpr std::size_t kSmallPage = 4096;  // an address between pages is refused, and the room stays: it costs nothing
  const std::size_t end = (bytes + kSmallPage - 1) / kSmallPage * kSmallPage;
  if (before + end < bytes + room) ::munmap(data_ + end, bytes + room - before - end);
  prefer_huge_pages(data_, bytes / kHugePage * kHugePage);
}

ZeroedMemory::~ZeroedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace hk::engine
