// An answer on its way to the person: text to stdout, on a terminal made safe and a little nicer; reasoning dimmed,
// counted or left out.
//
// Layer: cli/chat.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/chat/markdown.h"

namespace hk::cli {

enum class ReasoningView : std::uint8_t {
  kShown,    ///< dimmed; without a terminal on stderr, since stdout carries the answer alone
  kCounted,  ///< one line with the number of its tokens; without a terminal as kHidden
  kHidden,
};

struct ViewOptions {
  bool terminal = false;  ///< stdout is one
  bool colours = false;   ///< and takes colours: not NO_COLOR, not TERM=dumb
  ReasoningView reasoning = ReasoningView::kShown;
};

class AnswerView {
 public:
  explicit AnswerView(const ViewOptions& options) : options_(options) {}

  /// `tokens`: of reasoning, so far.
  void reasoning(std::string_view text, std::size_t tokens);
  void answer(std::string_view text);
  /// Ends the last line and puts colours back.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void count(std::size_t tokens);
  void end_reasoning();
  void write(std::string_view text);

  ViewOptions options_;
  MarkdownRenderer markdown_;
  bool reasoning_begun_ = false;
  bool in_reasoning_ = false;
  std::size_t tokens_ = 0;
  Clock::time_point begin_{}, drawn_{};
  bool line_open_ = false;  // the last character was no line break
  bool anything_ = false;
};

}  // namespace hk::cli
