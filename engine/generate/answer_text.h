// The way of sampled tokens to text: characters made whole, stop strings cut off.
//
// Layer: engine/generate.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/generate/stop_matcher.h"
#include "tokenizer/tokenizer.h"

namespace hk::engine {

class AnswerText {
 public:
  /// `fresh`: the answer is a text of its own, without the prefix blank at its start. `shown`: special tokens that are
  /// shown in any case. `tokenizer` must outlive it.
  AnswerText(const tokenizer::Tokenizer& tokenizer, std::vector<std::string> stops, bool show_special, bool fresh,
             std::vector<tokenizer::TokenId> shown = {})
      : stream_(tokenizer, !show_special, fresh, std::move(shown)), stops_(std::move(stops)) {}

  /// Text that is certain now: valid UTF-8, and no part of a stop string.
  std::string push(tokenizer::TokenId id) { return stops_.push(stream_.push(id)); }
  /// The rest, when no more tokens come.
  std::string finish() {
    std::string text = stops_.push(stream_.finish());
    if (!stopped()) text += stops_.finish();
    return text;
  }
  bool stopped() const { return stops_.found(); }
  std::string_view stop() const { return stops_.stop(); }

 private:
  tokenizer::TextStream stream_;
  StopMatcher stops_;
};

}  // namespace hk::engine
