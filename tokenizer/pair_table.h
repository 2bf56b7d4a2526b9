// The merges of a BPE vocabulary: (left id, right id) -> rank and product.
//
// Layer: tokenizer. 16 bytes a merge, linear probing; keyed by ids so that merging never touches a text.
#pragma once

#include <cstdint>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/merge_list.h"

namespace hk::tokenizer {

class PairTable {
 public:
  void reserve(std::size_t merges) { slots_.assign(merges * 3 / 2 + 1, Slot{}); }

  void prefetch(TokenId left, TokenId right) const { __builtin_prefetch(&slots_[start(left, right)], 1); }

  /// Room for it must have been reserved. A pair that is already there keeps its first rank.
  void insert(TokenId left, TokenId right, MergeRule rule) {
    for (std::size_t at = start(left, right);; at = following(at)) {
      Slot& slot = slots_[at];
      if (slot.left == left && slot.right == right) return;
      if (slot.left < 0) {
        slot = {left, right, rule};
        return;
      }
    }
  }

  MergeRule find(TokenId left, TokenId right) const {
    for (std::size_t at = start(left, right);; at = following(at)) {
      const Slot& slot = slots_[at];
      if (slot.left == left && slot.right == right) return slot.rule;
      if (slot.left < 0) return {};
    }
  }

 private:
  struct Slot {
    TokenId left = -1;
    TokenId right = -1;
    MergeRule rule;
  };

  std::size_t start(TokenId left, TokenId right) const {
    return slot_of(hash_pair(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right)), slots_.size());
  }
  std::size_t following(std::size_t at) const { return at + 1 == slots_.size() ? 0 : at + 1; }

  std::vector<Slot> slots_{1};
};

}  // namespace hk::tokenizer
