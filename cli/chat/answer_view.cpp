// Views of an answer (see answer_view.h).
#include "cli/chat/answer_view.h"

#include <fmt/format.h>

#include "cli/chat/screen.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kOff = "\x1b[0m";
constexpr std::chrono::milliseconds kRedraw{100};  // often enough to look alive

}  // namespace

void AnswerView::write(std::string_view text) {
  if (text.empty()) return;
  write_answer(text);
  anything_ = true;
  line_open_ = !text.ends_with('\n');
}

void AnswerView::reasoning(std::string_view text, std::size_t tokens) {
  tokens_ = tokens;
  if (options_.reasoning == ReasoningView::kHidden) return;
  if (!options_.terminal) {
    if (options_.reasoning != ReasoningView::kShown) return;
    write_aside(text);
    in_reasoning_ = reasoning_begun_ = true;
    line_open_ = !text.ends_with('\n');
    return;
  }
  if (!reasoning_begun_) begin_ = Clock::now();
  const bool first = !in_reasoning_;
  in_reasoning_ = reasoning_begun_ = true;
  if (options_.reasoning == ReasoningView::kCounted) {
    count(tokens);
    return;
  }
  if (first) write(options_.colours ? kDim : std::string_view("[thinking] "));
  write(terminal_safe(text));
  line_open_ = !text.ends_with('\n');
}

void AnswerView::count(std::size_t tokens) {
  const auto now = Clock::now();
  if (now - drawn_ < kRedraw) return;
  drawn_ = now;
  const auto line = fmt::format("thinking: {} tokens", tokens);
  write_answer(options_.colours ? fmt::format("\r{}{}{}\x1b[K", kDim, line, kOff) : "\r" + line);
}

void AnswerView::end_reasoning() {
  if (!in_reasoning_) return;
  in_reasoning_ = false;
  if (!options_.terminal) {
    write_aside(line_open_ ? "\n" : "");
    line_open_ = false;
    return;
  }
  if (options_.reasoning == ReasoningView::kCounted) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const auto line = fmt::format("[thought: {} tokens, {:.1f} s]", tokens_, seconds);
    write_answer(options_.colours ? fmt::format("\r{}{}{}\x1b[K\n", kDim, line, kOff) : fmt::format("\r{}\n", line));
    line_open_ = false;
    return;
  }
  if (options_.colours) write_answer(kOff);
  write_answer(line_open_ ? "\n\n" : "\n");
  line_open_ = false;
}

void AnswerView::answer(std::string_view text) {
  end_reasoning();
  if (!options_.terminal) {
    write(text);
  } else if (!options_.colours) {
    write(terminal_safe(text));
  } else {
    write(markdown_.push(terminal_safe(text)));
    line_open_ = !text.ends_with('\n');
  }
}

void AnswerView::finish() {
  const bool reasoning_only = in_reasoning_;
  end_reasoning();
  if (options_.colours) {
    // Attributes alone are no text: whether a line is open stays as it was.
    const bool open = line_open_;
    const auto rest = markdown_.finish();
    if (!rest.empty()) write_answer(rest);
    line_open_ = open;
  }
  // Without a terminal an empty answer is a line too, so that answers can be told apart.
  if (line_open_ || (!anything_ && !reasoning_only) || (!options_.terminal && !anything_)) write_answer("\n");
  line_open_ = false;
}

}  // namespace hk::cli
