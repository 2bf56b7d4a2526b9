// The merge loop both families share: always the adjacent pair with the lowest priority number, the leftmost on a tie.
//
// Layer: tokenizer. Short words are scanned for their best pair; long ones use a heap with lazy deletion, O(n log n),
// because one word can be the whole input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace hk::tokenizer {

/// A pair that merges: smaller `priority` first.
struct MergeRule {
  static constexpr std::uint32_t kNever = 0xFFFFFFFF;
  std::uint32_t priority = kNever;
  TokenId result = -1;
};

struct Symbol {
  std::uint32_t begin;  ///< in the word, in bytes
  std::uint32_t length;
  TokenId id;  ///< -1: a character that is no token
  std::uint32_t previous = 0;
  std::uint32_t next = 0;  ///< index of the right neighbour, kEnd for the last
  MergeRule rule;          ///< of this symbol with its right neighbour
};

class MergeList {
 public:
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF;

  void clear() { symbols_.clear(); }
  void add(std::uint32_t begin, std::uint32_t length, TokenId id) { symbols_.push_back({begin, length, id, 0, 0, {}}); }
  std::size_t size() const { return symbols_.size(); }

  /// `rule(left, right)` gives the MergeRule of two adjacent symbols.
  template <typename Rule>
  void merge(const Rule& rule) {
    const auto count = static_cast<std::uint32_t>(symbols_.size());
    for (std::uint32_t i = 0; i < count; ++i) {
      symbols_[i].previous = i == 0 ? kEnd : i - 1;
      symbols_[i].next = i + 1 == count ? kEnd : i + 1;
      symbols_[i].rule = i + 1 == count ? MergeRule{} : rule(symbols_[i], symbols_[i + 1]);
    }
    if (count <= kScanLimit) {
      merge_by_scan(rule);
    } else {
      merge_by_heap(rule);
    }
  }

  /// Calls `visit` for the symbols that are left, in order.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::uint32_t i = symbols_.empty() ? kEnd : 0; i != kEnd; i = symbols_[i].next) visit(symbols_[i]);
  }

 private:
  static constexpr std::uint32_t kScanLimit = 32;  // up to here walking the list is cheaper than a heap

  /// Merges symbol i with its right neighbour and renews the rules around it.
  template <typename Rule>
  void join(std::uint32_t i, const Rule& rule) {
    Symbol& left = symbols_[i];
    Symbol& right = symbols_[left.next];
    left.length += right.length;
    left.id = left.rule.result;
    right.rule = {};
    left.next = right.next;
    if (left.next != kEnd) symbols_[left.next].previous = i;
    left.rule = left.next == kEnd ? MergeRule{} : rule(left, symbols_[left.next]);
    if (left.previous != kEnd) symbols_[left.previous].rule = rule(symbols_[left.previous], left);
  }

  template <typename Rule>
  void merge_by_scan(const Rule& rule) {
    if (symbols_.empty()) return;
    for (;;) {
      std::uint32_t best = kEnd;
      std::uint32_t priority = MergeRule::kNever;
      for (std::uint32_t i = 0; i != kEnd; i = symbols_[i].next) {
        if (symbols_[i].rule.priority < priority) {
          priority = symbols_[i].rule.priority;
          best = i;
        }
      }
      if (best == kEnd) return;
      join(best, rule);
    }
  }

  void push(std::uint32_t i) {
    if (i == kEnd || symbols_[i].rule.priority == MergeRule::kNever) return;
    heap_.push_back(static_cast<std::uint64_t>(symbols_[i].rule.priority) << 32 | i);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  template <typename Rule>
  void merge_by_heap(const Rule& rule) {
    heap_.clear();
    for (std::uint32_t i = 0; i < symbols_.size(); ++i)
      if (symbols_[i].rule.priority != MergeRule::kNever)
        heap_.push_back(static_cast<std::uint64_t>(symbols_[i].rule.priority) << 32 | i);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const std::uint64_t top = heap_.back();
      heap_.pop_back();
      const auto i = static_cast<std::uint32_t>(top);
      // An entry is good as long as the pair that stands there now has its priority: absorbed symbols have none.
      if (symbols_[i].rule.priority != static_cast<std::uint32_t>(top >> 32)) continue;
      join(i, rule);
      push(i);
      push(symbols_[i].previous);
    }
  }

  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> heap_;
};

}  // namespace hk::tokenizer
