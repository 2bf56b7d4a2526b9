// Reads a message from a terminal: editing over several lines, history, completion, pasted text as one piece.
//
// Layer: cli/line_editor. Our own, because Debian's libedit knows neither pasted text nor lines of a message, and
// readline's licence would become that of the whole program.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/line_editor/edit_buffer.h"
#include "cli/line_editor/input_history.h"
#include "cli/line_editor/keys.h"
#include "cli/line_editor/line_painter.h"

namespace hk::cli {

/// What may stand in the place of the text from byte `begin` to the cursor.
struct Completion {
  std::size_t begin = 0;
  std::vector<std::string> words;
};

class LineEditor {
 public:
  enum class Event {
    kLine,
    kEnd,          ///< Ctrl-D on an empty line, or the terminal is gone
    kInterrupted,  ///< Ctrl-C; the text is discarded
  };
  using Completer = std::function<Completion(std::string_view text, std::size_t cursor)>;

  /// `history_path`: see InputHistory.
  LineEditor(std::string prompt, std::string continuation, const std::string& history_path, Completer completer);

  /// Reads one message, which may have several lines. `line` is what stands there at first.
  Event read(std::string& line);
  /// Ctrl-C discarded a text that was not empty.
  bool discarded_text() const { return discarded_text_; }

 private:
  enum class Step { kGoOn, kLine, kEnd, kInterrupted };

  Step handle(const Key& key);
  Step search_key(const Key& key);
  Step enter();
  void complete();
  void older();
  void newer();
  void show_entry(std::size_t index);
  void search_older();
  void paint();
  void print_below(std::string_view text);
  /// Waits for bytes, the window or, within a key, for nothing more to come. False at the end of the terminal.
  bool read_bytes(bool& window_changed);

  std::string prompt_;
  std::string continuation_;
  InputHistory history_;
  Completer completer_;

  EditBuffer buffer_;
  KeyDecoder keys_;  // outlives a line: what was typed ahead
  LinePainter painter_;
  std::size_t history_index_ = 0;  // history_.size(): the new text
  std::string new_text_;           // while an older one is shown
  bool searching_ = false;
  std::string query_;
  bool tab_before_ = false;
  bool discarded_text_ = false;
};

}  // namespace hk::cli
