// The text being typed and the place in it: all editing without any terminal.
//
// Layer: cli/line_editor. Positions are bytes and always at the beginning of a character; combining marks move with the
// character before them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hk::cli {

/// Where the next character begins; `at` when there is none.
std::size_t next_character(std::string_view text, std::size_t at);
/// Columns of a screen that a character takes: 0 for combining marks, 2 for wide ones; 2 for a control character, shown
/// as ^X.
std::size_t character_width(std::string_view character);

class EditBuffer {
 public:
  const std::string& text() const { return text_; }
  std::size_t cursor() const { return cursor_; }
  bool empty() const { return text_.empty(); }

  void set(std::string text);  ///< the cursor goes to the end
  void insert(std::string_view text);
  /// Puts `text` in the place of the bytes from `begin` to the cursor.
  void replace_before_cursor(std::size_t begin, std::string_view text);

  void left();
  void right();
  void word_left() { cursor_ = word_begin(); }
  void word_right() { cursor_ = word_end(); }
  void line_begin();
  void line_end();
  /// To the line above or below, at the same column as far as it is that long. False when there is none.
  bool up();
  bool down();

  void erase_left();
  void erase_right();
  void erase_word_left() { cut(word_begin(), cursor_); }
  void erase_word_right() { cut(cursor_, word_end()); }
  void cut_to_line_end();
  void cut_to_line_begin();
  void insert_cut() { insert(cut_); }

  /// The last character is a backslash and the cursor stands behind it.
  bool ends_in_backslash() const { return cursor_ == text_.size() && text_.ends_with('\\'); }

 private:
  std::size_t previous(std::size_t at) const;
  std::size_t word_begin() const;
  std::size_t word_end() const;
  std::size_t begin_of_line(std::size_t at) const;
  std::size_t end_of_line(std::size_t at) const;
  /// The place `characters` into the line that begins at `begin`.
  std::size_t place_in_line(std::size_t begin, std::size_t characters) const;
  std::size_t characters_before_cursor() const;
  void cut(std::size_t begin, std::size_t end);

  std::string text_;
  std::size_t cursor_ = 0;
  std::string cut_;
};

}  // namespace hk::cli
