// Runs a pre-tokenizer: cuts text into words by stages of regular expressions (PCRE2 with JIT).
//
// Layer: tokenizer. A Splitter is immutable and shared by threads; what a thread needs while matching is a
// SplitScratch.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/pretokenizers.h"
#include "tokenizer/text_sink.h"

namespace hk::tokenizer {

/// Match data and JIT stack of one thread.
class SplitScratch {
 public:
  SplitScratch();
  ~SplitScratch();
  SplitScratch(const SplitScratch&) = delete;
  SplitScratch& operator=(const SplitScratch&) = delete;

 private:
  friend class Splitter;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Splitter {
 public:
  /// `stages` are copied, their expressions are compiled. `limited`: the expressions come with a model, so a match that
  /// runs away is stopped (hk::Error). `origin` names file and key for messages.
  Splitter(std::span<const Stage> stages, bool limited, std::string_view origin);
  ~Splitter();
  Splitter(Splitter&&) noexcept;

  /// Words of `text`, which must be valid UTF-8, in order; concatenated they are `text`.
  void split(std::string_view text, SplitScratch& scratch, TextSink sink) const;

 private:
  struct Expression;
  void run(std::size_t stage, std::string_view piece, SplitScratch& scratch, TextSink sink) const;

  std::vector<Expression> stages_;
  std::string origin_;
};

}  // namespace hk::tokenizer
