// Messages from the person: edited and with a history on a terminal, a line each elsewhere.
//
// Layer: cli/chat.
#pragma once

#include <memory>
#include <string>

#include "cli/line_editor/line_editor.h"

namespace hk::cli {

class LineReader {
 public:
  using Event = LineEditor::Event;

  virtual ~LineReader() = default;
  /// Reads one message without its end; `line` is what stands there to be edited, on a terminal.
  virtual Event read(std::string& line) = 0;
  /// Of the latest interrupted read: there was a text, which is discarded.
  virtual bool discarded_text() const { return false; }

  /// Of standard input as it is.
  static std::unique_ptr<LineReader> plain();
  /// Line editing; the arguments are those of LineEditor.
  static std::unique_ptr<LineReader> editing(bool colours, const std::string& history_path,
                                             LineEditor::Completer completer);
};

}  // namespace hk::cli
