// The typed text on a screen: broken into rows, drawn, and drawn again after a key or another window size.
//
// Layer: cli/line_editor. Makes the bytes for the terminal; somebody else writes them. Rows are broken here and never
// left to the terminal, so that it is known where the cursor stands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hk::cli {

struct LineRow {
  std::string text;
  std::size_t width = 0;  ///< columns
};

struct LineLayout {
  std::vector<LineRow> rows;
  std::size_t cursor_row = 0;
  std::size_t cursor_column = 0;
};

/// `prompt` stands before the first line and `continuation` before the others; both may hold colours, which take no
/// columns. `cursor`: byte of `text`.
LineLayout lay_out(std::string_view prompt, std::string_view continuation, std::string_view text, std::size_t cursor,
                   std::size_t columns);

class LinePainter {
 public:
  /// Draws in the place of what was drawn last. Of more rows than fit on a screen those around the cursor are shown.
  std::string paint(const LineLayout& layout, std::size_t columns, std::size_t screen_rows);
  /// Moves below what was drawn, whose place is no longer remembered.
  std::string leave();
  /// Forgets what was drawn: the next `paint` begins at the cursor's row.
  void forget() { drawn_ = {}; }

 private:
  /// To the beginning of what was drawn, on a screen that is `columns` wide now.
  std::string to_first_row(std::size_t columns) const;

  LineLayout drawn_;  // what stands on the screen
};

}  // namespace hk::cli
