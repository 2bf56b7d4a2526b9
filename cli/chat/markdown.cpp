// Streaming markdown (see markdown.h).
#include "cli/chat/markdown.h"

#include <algorithm>

namespace hk::cli {
namespace {

constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kDim = "\x1b[2m";
constexpr std::string_view kCode = "\x1b[36m";  // cyan is readable on light and on dark
constexpr std::string_view kOff = "\x1b[0m";
constexpr std::size_t kMostHashes = 6;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

void MarkdownRenderer::restore_style() {
  style(kOff);
  if (heading_ || bold_) style(kBold);
  if (code_ || fenced_) style(kCode);
}

std::string MarkdownRenderer::push(std::string_view text) {
  for (const char c : text) {
    if (place_ == Place::kLineStart) {
      line_start(c);
    } else {
      inline_text(c);
    }
  }
  std::string out;
  out.swap(out_);
  return out;
}

std::string MarkdownRenderer::finish() {
  if (place_ == Place::kLineStart) decide_line_start();
  resolve_marks('\n');
  if (heading_ || bold_ || code_ || fenced_ || place_ == Place::kFence) style(kOff);
  heading_ = bold_ = code_ = fenced_ = false;
  place_ = Place::kLineStart;
  std::string out;
  out.swap(out_);
  return out;
}

void MarkdownRenderer::text_as_it_is(std::string_view text) {
  out_ += text;
  if (!text.empty()) before_ = text.back();
}

/// Collects the beginning of a line until it is clear what the line is.
void MarkdownRenderer::line_start(char c) {
  if (c == '\n') {
    decide_line_start();
    inline_text(c);
    return;
  }
  held_ += c;
  const auto first = held_.find_first_not_of(' ');
  if (first == std::string::npos) return;
  const std::string_view mark = std::string_view(held_).substr(first);
  const std::size_t same = std::min(mark.find_first_not_of(mark[0]), mark.size());
  const bool whole = same == mark.size();
  switch (mark[0]) {
    case '`':
    case '~':
      if (whole) return;  // more marks may come
      break;
    case '#':
      if (!fenced_ && whole && same <= kMostHashes) return;
      break;
    case '-':
    case '+':
    case '*':
      if (!fenced_ && whole && same == 1) return;
      break;
    default:
      break;
  }
  decide_line_start();
}

void MarkdownRenderer::decide_line_start() {
  std::string held;
  held.swap(held_);
  place_ = fenced_ ? Place::kCode : Place::kText;
  const auto first = held.find_first_not_of(' ');
  if (first == std::string::npos) {
    text_as_it_is(held);
    return;
  }
  const std::string_view mark = std::string_view(held).substr(first);
  const std::size_t same = std::min(mark.find_first_not_of(mark[0]), mark.size());
  if ((mark[0] == '`' || mark[0] == '~') && same >= 3) {
    const std::string marks(mark.substr(0, same));
    const bool closes = fenced_ && marks[0] == fence_[0] && marks.size() >= fence_.size();
    if (!fenced_ || closes) {
      place_ = Place::kFence;
      fenced_ = !fenced_;
      fence_ = marks;
      style(kOff);
      style(kDim);
      text_as_it_is(held);
      return;
    }
  }
  if (fenced_) {
    text_as_it_is(held);
    return;
  }
  if (mark[0] == '#' && same <= kMostHashes && same < mark.size() && is_blank(mark[same])) {
    heading_ = true;
    style(kBold);
    text_as_it_is(held.substr(0, first));
    return;  // the blank goes with the hashes
  }
  if ((mark[0] == '-' || mark[0] == '+' || mark[0] == '*') && mark.size() == 2 && is_blank(mark[1])) {
    text_as_it_is(held.substr(0, first));
    text_as_it_is("\xe2\x80\xa2 ");  // a bullet
    return;
  }
  for (const char c : held) inline_text(c);
}

/// Asterisks that were held back, now that the character after them is known.
void MarkdownRenderer::resolve_marks(char next) {
  std::string marks;
  marks.swap(held_);
  if (marks != "**" || (bold_ ? is_blank(before_) : is_blank(next) || next == '*')) {
    text_as_it_is(marks);
    return;
  }
  bold_ = !bold_;
  if (bold_) {
    style(kBold);
  } else {
    restore_style();
  }
}

void MarkdownRenderer::end_line() {
  resolve_marks('\n');
  if (place_ == Place::kFence) {
    style(kOff);
    if (fenced_) style(kCode);
  } else if (heading_ || bold_ || code_) {
    // None of them goes beyond its line: a mark that was none must not colour the rest of the answer.
    heading_ = bold_ = code_ = false;
    style(kOff);
  }
  place_ = Place::kLineStart;
}

void MarkdownRenderer::inline_text(char c) {
  if (c == '\n') {
    end_line();
    out_ += c;
    before_ = c;
    return;
  }
  if (place_ == Place::kCode || place_ == Place::kFence) {
    text_as_it_is({&c, 1});
    return;
  }
  if (held_ == "**" || c != '*') resolve_marks(c);
  if (c == '*' && !code_) {
    held_ += c;
    return;
  }
  if (c == '`') {
    // The marks stay: whether there is a second one is not known yet.
    if (!code_) {
      code_ = true;
      style(kCode);
      text_as_it_is("`");
    } else {
      text_as_it_is("`");
      code_ = false;
      restore_style();
    }
    return;
  }
  text_as_it_is({&c, 1});
}

}  // namespace hk::cli
