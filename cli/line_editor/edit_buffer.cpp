// Editing of a text (see edit_buffer.h).
#include "cli/line_editor/edit_buffer.h"

#include <algorithm>
#include <cwchar>
#include <utility>

namespace hk::cli {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

bool is_word(char byte) {
  const auto c = static_cast<unsigned char>(byte);
  return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::size_t code_point_end(std::string_view text, std::size_t at) {
  if (at >= text.size()) return text.size();
  ++at;
  while (at < text.size() && is_continuation(text[at])) ++at;
  return at;
}

}  // namespace

std::size_t character_width(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 2 : 1;
  char32_t code = first >= 0xf0 ? first & 0x07 : first >= 0xe0 ? first & 0x0f : first & 0x1f;
  for (std::size_t i = 1; i < character.size(); ++i) {
    if (!is_continuation(character[i])) break;  // a mark that belongs to the character
    code = code << 6 | (static_cast<unsigned char>(character[i]) & 0x3f);
  }
  const int width = ::wcwidth(static_cast<wchar_t>(code));
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

std::size_t next_character(std::string_view text, std::size_t at) {
  std::size_t end = code_point_end(text, at);
  while (end < text.size()) {
    const std::size_t mark_end = code_point_end(text, end);
    const std::string_view mark = text.substr(end, mark_end - end);
    if (static_cast<unsigned char>(mark[0]) < 0x80 || character_width(mark) != 0) break;
    end = mark_end;
  }
  return end;
}

void EditBuffer::set(std::string text) {
  text_ = std::move(text);
  cursor_ = text_.size();
}

void EditBuffer::insert(std::string_view text) {
  text_.insert(cursor_, text);
  cursor_ += text.size();
}

void EditBuffer::replace_before_cursor(std::size_t begin, std::string_view text) {
  text_.replace(begin, cursor_ - begin, text);
  cursor_ = begin + text.size();
}

std::size_t EditBuffer::previous(std::size_t at) const {
  // Going forward from the line's beginning finds the same borders as moving right does.
  std::size_t from = at == 0 ? 0 : begin_of_line(at - 1);
  std::size_t before = from;
  while (from < at) {
    before = from;
    from = next_character(text_, from);
  }
  return before;
}

void EditBuffer::left() { cursor_ = cursor_ == 0 ? 0 : previous(cursor_); }

void EditBuffer::right() { cursor_ = next_character(text_, cursor_); }

std::size_t EditBuffer::word_begin() const {
  std::size_t at = cursor_;
  while (at > 0 && !is_word(text_[at - 1])) --at;
  while (at > 0 && is_word(text_[at - 1])) --at;
  return at;
}

std::size_t EditBuffer::word_end() const {
  std::size_t at = cursor_;
  while (at < text_.size() && !is_word(text_[at])) ++at;
  while (at < text_.size() && is_word(text_[at])) ++at;
  return at;
}

std::size_t EditBuffer::begin_of_line(std::size_t at) const {
  if (at == 0) return 0;
  const std::size_t found = text_.rfind('\n', at - 1);
  return found == std::string::npos ? 0 : found + 1;
}

std::size_t EditBuffer::end_of_line(std::size_t at) const { return std::min(text_.find('\n', at), text_.size()); }

void EditBuffer::line_begin() { cursor_ = begin_of_line(cursor_); }

void EditBuffer::line_end() { cursor_ = end_of_line(cursor_); }

std::size_t EditBuffer::place_in_line(std::size_t begin, std::size_t characters) const {
  const std::size_t end = end_of_line(begin);
  std::size_t at = begin;
  for (; characters > 0 && at < end; --characters) at = std::min(end, next_character(text_, at));
  return at;
}

std::size_t EditBuffer::characters_before_cursor() const {
  std::size_t count = 0;
  for (std::size_t at = begin_of_line(cursor_); at < cursor_; at = next_character(text_, at)) ++count;
  return count;
}

bool EditBuffer::up() {
  const std::size_t begin = begin_of_line(cursor_);
  if (begin == 0) return false;
  cursor_ = place_in_line(begin_of_line(begin - 1), characters_before_cursor());
  return true;
}

bool EditBuffer::down() {
  const std::size_t end = end_of_line(cursor_);
  if (end == text_.size()) return false;
  cursor_ = place_in_line(end + 1, characters_before_cursor());
  return true;
}

void EditBuffer::erase_left() {
  const std::size_t end = cursor_;
  left();
  text_.erase(cursor_, end - cursor_);
}

void EditBuffer::erase_right() { text_.erase(cursor_, next_character(text_, cursor_) - cursor_); }

void EditBuffer::cut(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  cut_ = text_.substr(begin, end - begin);
  text_.erase(begin, end - begin);
  cursor_ = begin;
}

void EditBuffer::cut_to_line_end() {
  const std::size_t end = end_of_line(cursor_);
  cut(cursor_, end == cursor_ && end < text_.size() ? end + 1 : end);
}

void EditBuffer::cut_to_line_begin() { cut(begin_of_line(cursor_), cursor_); }

}  // namespace hk::cli
