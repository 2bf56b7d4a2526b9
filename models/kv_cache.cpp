// Keys and values of one conversation (see kv_cache.h).
#include "models/kv_cache.h"

#include <algorithm>
#include <cstring>

namespace hk::models {

using kernels::kKvPage;

namespace {

// From this page on (1024 positions) on huge pages. Reading a long context goes over more memory than the processor
// keeps addresses of in small pages; in a short one a whole huge page would be taken for a few positions.
constexpr std::size_t kFirstHuge = 4;

}  // namespace

std::size_t kv_page_bytes(const KvSlot& slot, kernels::KvType type) {
  return slot.heads *
         (kernels::key_page_bytes(type, slot.key_length) + kernels::value_page_bytes(type, slot.value_length));
}

KvSequence::KvSequence(const void* owner, const ModelSpec& spec, const engine::SequenceOptions& options)
    : owner_(owner), options_(options), has_state_(spec.state_floats != 0), recurrent_(spec.state_floats) {
  slots_.reserve(spec.kv_slots.size());
  for (const KvSlot& slot : spec.kv_slots) {
    const std::size_t keys = kernels::key_page_bytes(options.kv, slot.key_length);
    const std::size_t values = kernels::value_page_bytes(options.kv, slot.value_length);
    slots_.push_back({slot, keys, keys + values, kv_page_bytes(slot, options.kv), 0, {}});
  }
}

std::uint64_t KvSequence::state_bytes() const {
  std::uint64_t bytes = has_state_ ? recurrent_.bytes() : 0;
  for (const Pages& slot : slots_) bytes += (slot.pages.size() - slot.first_kept) * slot.bytes;
  return bytes;
}

std::size_t KvSequence::truncate(std::size_t length) {
  length = std::min(length, length_);
  if (has_state_) length = recurrent_.reachable(length, length_);
  for (const Pages& slot : slots_) {
    // A position sees window - 1 earlier ones; when a page of those is gone, the way back leads to the start only.
    const std::size_t first_seen =
        slot.shape.window == 0 || length < slot.shape.window ? 0 : length + 1 - slot.shape.window;
    if (first_seen < slot.first_kept * kKvPage) length = 0;
  }
  const std::size_t pages = (length + kKvPage - 1) / kKvPage;
  for (Pages& slot : slots_) {
    if (length == 0) slot.first_kept = 0;
    if (slot.pages.size() > pages) slot.pages.resize(pages);
  }
  if (has_state_) recurrent_.go_back(length, length_);
  length_ = length;
  return length;
}

void KvSequence::begin_call() {
  if (has_state_) recurrent_.begin_call(length_);
}

void KvSequence::end_call(std::size_t tokens) {
  if (has_state_) recurrent_.end_call(tokens);
}

void KvSequence::commit(std::size_t length) {
  if (has_state_ && length != length_) recurrent_.commit(length);
  length_ = length;
}

std::unique_ptr<engine::Sequence> KvSequence::fork() const { return std::make_unique<KvSequence>(*this); }

void KvSequence::prepare(std::size_t from, std::size_t count) {
  if (count == 0) return;
  const std::size_t first = from / kKvPage;
  const std::size_t end = (from + count + kKvPage - 1) / kKvPage;
  for (Pages& slot : slots_) {
    if (slot.pages.size() < end) slot.pages.resize(end);
  }
  for (std::size_t i = first; i < end; ++i) own_page(i);
  if (has_state_) recurrent_.prepare();
}

/// Makes a page exist in every slot, this sequence's alone, with what it held.
void KvSequence::own_page(std::size_t index) {
  const auto lacks = [&](const Pages& slot) {
    return slot.pages[index] == nullptr || slot.pages[index].use_count() != 1;
  };
  for (auto slot = slots_.begin(); slot != slots_.end(); ++slot) {
    if (!lacks(*slot)) continue;
    const auto goes_along = [&](const Pages& other) {
      return other.shape.window == slot->shape.window && lacks(other);
    };
    std::size_t bytes = 0;
    for (auto other = slot; other != slots_.end(); ++other) bytes += goes_along(*other) ? other->bytes : 0;
    const auto memory = std::make_shared<engine::ZeroedMemory>(
        bytes, index < kFirstHuge ? engine::ZeroedMemory::Pages::kSmall : engine::ZeroedMemory::Pages::kHuge,
        "the context");
    std::size_t offset = 0;
    for (auto other = slot; other != slots_.end(); ++other) {
      if (!goes_along(*other)) continue;
      auto own = std::make_shared<KvPage>(memory, offset);
      offset += other->bytes;
      if (const auto& shared = other->pages[index]; shared != nullptr)
        std::memcpy(own->data(), shared->data(), other->bytes);
      other->pages[index] = std::move(own);
    }
  }
}

void KvSequence::release_unseen(std::size_t next, std::size_t keep) {
  const std::size_t needed = std::min(next, keep);
  for (Pages& slot : slots_) {
    if (slot.shape.window == 0) continue;
    const std::size_t reach = slot.shape.window - 1 + kKvPage;  // one page of slack for going back
    const std::size_t first = needed <= reach ? 0 : (needed - reach) / kKvPage;
    for (; slot.first_kept < std::min(first, slot.pages.size()); ++slot.first_kept) slot.pages[slot.first_kept].reset();
  }
}

const std::byte* KvSequence::keys(std::size_t slot, std::size_t head, std::size_t page) const {
  const Pages& pages = slots_[slot];
  return pages.pages[page]->data() + head * pages.head_bytes;
}

const std::byte* KvSequence::values(std::size_t slot, std::size_t head, std::size_t page) const {
  const Pages& pages = slots_[slot];
  return pages.pages[page]->data() + head * pages.head_bytes + pages.key_bytes;
}

std::byte* KvSequence::keys(std::size_t slot, std::size_t head, std::size_t page) {
  Pages& pages = slots_[slot];
  return pages.pages[page]->data() + head * pages.head_bytes;
}

std::byte* KvSequence::values(std::size_t slot, std::size_t head, std::size_t page) {
  Pages& pages = slots_[slot];
  return pages.pages[page]->data() + head * pages.head_bytes + pages.key_bytes;
}

}  // namespace hk::models
