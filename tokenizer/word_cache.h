// Remembers the ids of short words. Text repeats its words, so most of them are merged once.
//
// Layer: tokenizer. Bounded by construction: a table of fixed 64-byte entries, a new word pushes out the one in its
// place. One cache belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/tokenizer.h"

namespace hk::tokenizer {

class WordCache {
 public:
  static constexpr std::size_t kEntries = 1U << 14;  // 1 MiB: holds the working set of prose, fits a core's L2
  static constexpr std::size_t kMaxBytes = 30;
  static constexpr std::size_t kMaxIds = 8;

  /// Appends the ids of `word` to `out`: remembered ones, or those that `merge` (void()) appends, which are remembered.
  template <typename Merge>
  void append(std::string_view word, std::vector<TokenId>& out, const Merge& merge) {
    if (word.size() > kMaxBytes) return merge();
    const std::uint64_t hash = hash_text(word);
    const std::span<const TokenId> known = find(word, hash);
    if (!known.empty()) {
      out.insert(out.end(), known.begin(), known.end());
      return;
    }
    const std::size_t before = out.size();
    merge();
    store(word, hash, std::span(out).subspan(before));
  }

 private:
  /// Ids of a word; empty when unknown. `hash` is hash_text(word).
  std::span<const TokenId> find(std::string_view word, std::uint64_t hash) const {
    if (entries_.empty()) return {};
    const Entry& entry = entries_[slot_of(hash, kEntries)];
    if (entry.count == 0 || entry.bytes != word.size() || std::memcmp(entry.text, word.data(), word.size()) != 0)
      return {};
    return {entry.ids, entry.count};
  }

  void store(std::string_view word, std::uint64_t hash, std::span<const TokenId> ids) {
    if (ids.empty() || ids.size() > kMaxIds) return;
    if (entries_.empty()) entries_.resize(kEntries);
    Entry& entry = entries_[slot_of(hash, kEntries)];
    entry.bytes = static_cast<std::uint8_t>(word.size());
    entry.count = static_cast<std::uint8_t>(ids.size());
    std::memcpy(entry.text, word.data(), word.size());
    std::memcpy(entry.ids, ids.data(), ids.size_bytes());
  }

  struct alignas(64) Entry {
    TokenId ids[kMaxIds];
    char text[kMaxBytes];
    std::uint8_t bytes = 0;
    std::uint8_t count = 0;
  };
  static_assert(sizeof(Entry) == 64);

  std::vector<Entry> entries_;
};

}  // namespace hk::tokenizer
