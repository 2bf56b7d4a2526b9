// A sequence's state as pieces that can be kept outside the process, and made of such pieces again (see kv_cache.h).
#include <algorithm>
#include <cstring>

#include "models/kv_cache.h"

namespace hk::models {

using engine::StatePart;
using kernels::kKvPage;

std::vector<StatePart> KvSequence::state_parts() const {
  std::vector<StatePart> parts;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const Pages& pages = slots_[slot];
    for (std::size_t page = pages.first_kept; page < pages.pages.size(); ++page)
      if (pages.pages[page] != nullptr)
        parts.push_back({static_cast<std::uint32_t>(slot),
                         static_cast<std::uint32_t>(page),
                         {pages.pages[page]->data(), pages.bytes}});
  }
  if (has_state_ && length_ != 0) parts.push_back({0, StatePart::kWhole, std::as_bytes(recurrent_.present())});
  return parts;
}

bool KvSequence::load_state(std::size_t length, std::span<const StatePart> parts) {
  if (length_ != 0 || length == 0 || length > capacity()) return false;
  const std::size_t page_count = (length + kKvPage - 1) / kKvPage;
  const StatePart* whole = nullptr;
  std::vector<std::vector<const StatePart*>> found(slots_.size(), std::vector<const StatePart*>(page_count));
  for (const StatePart& part : parts) {
    if (part.page == StatePart::kWhole) {
      whole = &part;
    } else if (part.group < slots_.size() && part.page < page_count && part.bytes.size() == slots_[part.group].bytes) {
      found[part.group][part.page] = &part;
    } else {
      return false;
    }
  }
  if (has_state_ != (whole != nullptr)) return false;
  if (has_state_ && whole->bytes.size() != recurrent_.present_bytes()) return false;
  std::vector<std::size_t> first_kept(slots_.size());
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    // All pages from the first one that the next position sees.
    const std::size_t window = slots_[slot].shape.window;
    const std::size_t seen = window == 0 || length < window ? 0 : (length + 1 - window) / kKvPage;
    std::size_t first = page_count;
    while (first > 0 && found[slot][first - 1] != nullptr) --first;
    if (first > seen) return false;
    first_kept[slot] = first;
  }
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot].first_kept = first_kept[slot];
    slots_[slot].pages.assign(page_count, nullptr);
  }
  for (std::size_t page = 0; page < page_count; ++page) {
    own_page(page);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (page < first_kept[slot])
        slots_[slot].pages[page].reset();
      else
        std::memcpy(slots_[slot].pages[page]->data(), found[slot][page]->bytes.data(), slots_[slot].bytes);
    }
  }
  if (has_state_) recurrent_.assign(whole->bytes);
  length_ = length;
  return true;
}

}  // namespace hk::models
