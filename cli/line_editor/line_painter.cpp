// Layout and drawing (see line_painter.h).
#include "cli/line_editor/line_painter.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/line_editor/edit_buffer.h"

namespace hk::cli {
namespace {

constexpr std::size_t kTabWidth = 4;  // pasted code keeps its shape and does not run off the screen

/// Collects rows; knows when one is full.
class Rows {
 public:
  Rows(LineLayout& layout, std::size_t columns) : layout_(layout), columns_(columns) { layout_.rows.emplace_back(); }

  void add(std::string_view text, std::size_t width) {
    if (row().width + width > columns_) new_row();
    row().text += text;
    row().width += width;
  }
  /// Text that takes no columns or that may be cut nowhere else: a prompt with colours.
  void add_prompt(std::string_view prompt) {
    for (std::size_t at = 0; at < prompt.size();) {
      if (prompt[at] == '\x1b') {
        const std::size_t end = std::min(prompt.find('m', at), prompt.size() - 1) + 1;
        row().text += prompt.substr(at, end - at);
        at = end;
        continue;
      }
      const std::size_t end = next_character(prompt, at);
      add(prompt.substr(at, end - at), character_width(prompt.substr(at, end - at)));
      at = end;
    }
  }
  void new_row() { layout_.rows.emplace_back(); }
  void mark_cursor() {
    // Behind a full row the cursor stands at the beginning of the next.
    if (row().width >= columns_) new_row();
    layout_.cursor_row = layout_.rows.size() - 1;
    layout_.cursor_column = row().width;
  }

 private:
  LineRow& row() { return layout_.rows.back(); }

  LineLayout& layout_;
  std::size_t columns_;
};

}  // namespace

LineLayout lay_out(std::string_view prompt, std::string_view continuation, std::string_view text, std::size_t cursor,
                   std::size_t columns) {
  LineLayout layout;
  Rows rows(layout, std::max<std::size_t>(columns, 2));
  rows.add_prompt(prompt);
  for (std::size_t at = 0; at < text.size();) {
    if (at == cursor) rows.mark_cursor();
    const std::size_t end = next_character(text, at);
    const std::string_view character = text.substr(at, end - at);
    if (character[0] == '\n') {
      rows.new_row();
      rows.add_prompt(continuation);
    } else if (character[0] == '\t') {
      rows.add(std::string(kTabWidth, ' '), kTabWidth);
    } else if (static_cast<unsigned char>(character[0]) < 0x20) {
      rows.add(fmt::format("^{}", static_cast<char>(character[0] + '@')), 2);
    } else {
      rows.add(character, character_width(character));
    }
    at = end;
  }
  if (cursor >= text.size()) rows.mark_cursor();
  return layout;
}

std::string LinePainter::to_first_row(std::size_t columns) const {
  // A narrower window has broken the rows again.
  columns = std::max<std::size_t>(columns, 1);
  std::size_t above = drawn_.cursor_column / columns;
  for (std::size_t i = 0; i < drawn_.cursor_row; ++i)
    above += std::max<std::size_t>(1, (drawn_.rows[i].width + columns - 1) / columns);
  return above == 0 ? "\r" : fmt::format("\x1b[{}A\r", above);
}

std::string LinePainter::paint(const LineLayout& layout, std::size_t columns, std::size_t screen_rows) {
  std::string out = drawn_.rows.empty() ? "\r" : to_first_row(columns);
  out += "\x1b[J";
  const std::size_t shown = std::min(layout.rows.size(), std::max<std::size_t>(screen_rows, 1));
  std::size_t first = 0;
  if (shown < layout.rows.size())
    first = std::min(layout.rows.size() - shown, layout.cursor_row - std::min(layout.cursor_row, shown / 2));
  drawn_ = {};
  for (std::size_t i = first; i < first + shown; ++i) {
    if (i != first) out += "\r\n";
    out += layout.rows[i].text;
    drawn_.rows.push_back(layout.rows[i]);
  }
  drawn_.cursor_row = layout.cursor_row - first;
  drawn_.cursor_column = layout.cursor_column;
  if (const std::size_t up = shown - 1 - drawn_.cursor_row; up > 0) out += fmt::format("\x1b[{}A", up);
  out += '\r';
  if (drawn_.cursor_column > 0) out += fmt::format("\x1b[{}C", drawn_.cursor_column);
  return out;
}

std::string LinePainter::leave() {
  std::string out;
  if (!drawn_.rows.empty()) {
    if (const std::size_t down = drawn_.rows.size() - 1 - drawn_.cursor_row; down > 0)
      out += fmt::format("\x1b[{}B", down);
  }
  drawn_ = {};
  return out + "\r\n";
}

}  // namespace hk::cli
