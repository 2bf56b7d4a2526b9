// What one encode call works in, and the pool that hands it out: this keeps encode() const, thread-safe and lock-free
// inside.
//
// Layer: tokenizer.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/merge_list.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/splitter.h"
#include "tokenizer/word_cache.h"

namespace hk::tokenizer {

struct Scratch {
  std::vector<SpecialMatcher::Hit> hits;
  SplitScratch split;
  WordCache cache;
  MergeList merges;
  std::string segment;  // the normalised or prefixed segment
  std::string word;     // one word in the vocabulary's spelling
  std::string folded;   // the whole text, where it has to be rewritten before it is cut
};

class ScratchPool {
 public:
  /// Returns its scratch to the pool at the end of the call.
  class Lease {
   public:
    Lease(ScratchPool& pool, std::unique_ptr<Scratch> scratch) : pool_(pool), scratch_(std::move(scratch)) {}
    ~Lease() { pool_.put(std::move(scratch_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch& operator*() { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<Scratch> scratch_;
  };

  Lease take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return {*this, std::make_unique<Scratch>()};
    std::unique_ptr<Scratch> scratch = std::move(free_.back());
    free_.pop_back();
    return {*this, std::move(scratch)};
  }

 private:
  static constexpr std::size_t kKept = 4;              // more threads than that rarely tokenize at once
  static constexpr std::size_t kLargeText = 1U << 18;  // after a longer text the buffers are given back

  void put(std::unique_ptr<Scratch> scratch) noexcept {
    if (scratch->merges.size() > kLargeText) scratch->merges = {};
    if (scratch->hits.capacity() > kLargeText) scratch->hits = {};
    for (std::string* text : {&scratch->segment, &scratch->word, &scratch->folded})
      if (text->capacity() > kLargeText) *text = {};
    const std::lock_guard lock(mutex_);
    if (free_.size() < kKept) free_.push_back(std::move(scratch));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_ = [] {
    std::vector<std::unique_ptr<Scratch>> empty;
    empty.reserve(kKept);  // put() must not throw
    return empty;
  }();
};

}  // namespace hk::tokenizer
