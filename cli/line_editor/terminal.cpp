// Terminal modes through termios (see terminal.h).
#include "cli/line_editor/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/write_all.h"

namespace hk::cli {
namespace {

std::optional<struct termios> g_first;

/// TCSADRAIN: what was typed ahead is kept. The wait for the output to drain may be interrupted.
bool set_mode(const struct termios& mode) {
  int result = 0;
  do {
    result = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

WindowSize window_size() {
  struct winsize size {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void write_terminal(std::string_view text) { write_all(STDOUT_FILENO, text); }

TerminalMode::TerminalMode(Keys keys) : keys_(keys) { enter(); }

TerminalMode::~TerminalMode() { leave(); }

void TerminalMode::enter() {
  if (entered_ || ::tcgetattr(STDIN_FILENO, &before_) != 0) return;
  if (!g_first) g_first = before_;
  struct termios mode = before_;
  mode.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
  // Enter stays \r, so that what was typed ahead reads the same as what is typed in time.
  mode.c_iflag &= ~static_cast<tcflag_t>(ICRNL | INLCR);
  // Ctrl-C would throw away what was written last, "[stopped]" among it when the program is the faster one.
  mode.c_lflag |= static_cast<tcflag_t>(NOFLSH);
  if (keys_ == Keys::kAll) {
    mode.c_lflag &= ~static_cast<tcflag_t>(ISIG | IEXTEN);
    mode.c_iflag &= ~static_cast<tcflag_t>(IXON);
  }
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  if (!set_mode(mode)) return;
  entered_ = true;
  if (keys_ == Keys::kAll) write_terminal("\x1b[?2004h");
}

void TerminalMode::leave() {
  if (!entered_) return;
  entered_ = false;
  if (keys_ == Keys::kAll) write_terminal("\x1b[?2004l");
  set_mode(before_);
}

void TerminalMode::restore_first() {
  if (g_first) set_mode(*g_first);
}

}  // namespace hk::cli
