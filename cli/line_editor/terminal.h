// The terminal's modes: keys as they are pressed while a line is edited, silence while an answer is written.
//
// Layer: cli/line_editor. The terminal is put back on destruction, and by the editor before a signal ends the program.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string_view>

namespace hk::cli {

struct WindowSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};
WindowSize window_size();

/// Writes to the terminal; what it does not take is lost.
void write_terminal(std::string_view text);

/// Standard input as a terminal without echo, byte by byte.
class TerminalMode {
 public:
  enum class Keys {
    kAll,            ///< Ctrl-C and Ctrl-Z are keys like others; pasted text is marked
    kSignalsRemain,  ///< Ctrl-C interrupts; what is typed waits for the next reader
  };
  explicit TerminalMode(Keys keys);
  ~TerminalMode();
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  void enter();
  void leave();
  /// Puts the terminal back as the program found it, before a signal ends the program.
  static void restore_first();

 private:
  Keys keys_;
  bool entered_ = false;
  struct termios before_ {};
};

}  // namespace hk::cli
