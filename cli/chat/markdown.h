// Markdown made a little nicer for a terminal, while it arrives: headings and bold text, list marks, code in colour.
//
// Layer: cli/chat. Only what can be told from a few characters: nothing is taken back, so text is held only while its
// first characters may still be a mark. Everything else, tables and links too, passes as it is.
#pragma once

#include <string>
#include <string_view>

namespace hk::cli {

class MarkdownRenderer {
 public:
  /// Terminal text for what is certain now.
  std::string push(std::string_view text);
  /// What was held back, and all attributes off.
  std::string finish();

 private:
  enum class Place { kLineStart, kHeading, kText, kCode, kFence };

  void line_start(char c);
  void inline_text(char c);
  void decide_line_start();
  void resolve_marks(char next);
  void end_line();
  void text_as_it_is(std::string_view text);
  void style(std::string_view code) { out_ += code; }
  void restore_style();

  std::string out_;
  std::string held_;  // beginning of a line, or marks inside it, that are not decided yet
  Place place_ = Place::kLineStart;
  bool fenced_ = false;  // inside a code block
  std::string fence_;    // the marks that opened it
  bool heading_ = false;
  bool bold_ = false;
  bool code_ = false;  // between single backticks
  char before_ = ' ';  // last character that was let out
};

}  // namespace hk::cli
