// The loop of keys (see line_editor.h).
#include "cli/line_editor/line_editor.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <utility>

#include "cli/line_editor/terminal.h"

namespace hk::cli {
namespace {

/// Bytes of one key arrive together; what comes later is another key.
constexpr int kEscapeWaitMs = 50;

volatile std::sig_atomic_t g_window_changed = 0;
volatile std::sig_atomic_t g_ending_signal = 0;

void on_window_change(int) { g_window_changed = 1; }
void on_ending_signal(int signal) { g_ending_signal = signal; }

/// While one exists a changed window and signals that end the program interrupt a waiting read.
class SignalWatch {
 public:
  SignalWatch() {
    g_window_changed = 0;
    watch(SIGWINCH, on_window_change, window_);
    watch(SIGTERM, on_ending_signal, terminate_);
    watch(SIGHUP, on_ending_signal, hang_up_);
    watch(SIGINT, on_ending_signal, interrupt_);  // not from the keyboard, where Ctrl-C is a key
  }
  ~SignalWatch() {
    ::sigaction(SIGWINCH, &window_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
    ::sigaction(SIGHUP, &hang_up_, nullptr);
    ::sigaction(SIGINT, &interrupt_, nullptr);
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  static void watch(int signal, void (*handler)(int), struct sigaction& old) {
    struct sigaction action {};
    action.sa_handler = handler;  // no SA_RESTART: the wait ends
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, &old);
  }
  struct sigaction window_ {};
  struct sigaction terminate_ {};
  struct sigaction hang_up_ {};
  struct sigaction interrupt_ {};
};

std::size_t common_prefix(const std::vector<std::string>& words) {
  std::size_t length = words.front().size();
  for (const std::string& word : words) {
    std::size_t same = 0;
    while (same < std::min(length, word.size()) && word[same] == words.front()[same]) ++same;
    length = same;
  }
  return length;
}

}  // namespace

LineEditor::LineEditor(std::string prompt, std::string continuation, const std::string& history_path,
                       Completer completer)
    : prompt_(std::move(prompt)),
      continuation_(std::move(continuation)),
      history_(history_path),
      completer_(std::move(completer)) {
  // The widths of characters are the C library's, which knows them only in a UTF-8 locale.
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
}

bool LineEditor::read_bytes(bool& window_changed) {
  window_changed = false;
  char bytes[4096];
  while (true) {
    struct pollfd wait {
      STDIN_FILENO, POLLIN, 0
    };
    // A signal between the check and the wait is noticed at the latest after this time.
    constexpr int kLookAgainMs = 500;
    const int ready = ::poll(&wait, 1, keys_.waiting() ? kEscapeWaitMs : kLookAgainMs);
    if (g_ending_signal != 0) return false;
    if (g_window_changed != 0) {
      g_window_changed = 0;
      window_changed = true;
      return true;
    }
    if (ready == 0 && keys_.waiting()) return true;
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    if (ready < 0) return false;
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return false;
    keys_.feed({bytes, static_cast<std::size_t>(count)});
    return true;
  }
}

LineEditor::Event LineEditor::read(std::string& line) {
  buffer_.set(std::exchange(line, {}));
  history_index_ = history_.size();
  searching_ = false;
  tab_before_ = false;
  Step step = Step::kGoOn;
  int signal = 0;
  {
    const SignalWatch watch;
    TerminalMode mode(TerminalMode::Keys::kAll);
    painter_.forget();
    paint();
    bool nothing_more = false;
    while (step == Step::kGoOn) {
      auto key = keys_.next();
      if (!key && nothing_more) key = keys_.flush();
      nothing_more = false;
      if (key) {
        if (key->kind == KeyKind::kSuspend) {
          write_terminal(painter_.leave());
          mode.leave();
          ::raise(SIGTSTP);
          mode.enter();
          paint();
          continue;
        }
        step = searching_ ? search_key(*key) : handle(*key);
        // Pasted or typed ahead: painted once.
        if (step == Step::kGoOn && !keys_.waiting()) paint();
        continue;
      }
      bool window_changed = false;
      const std::size_t before = keys_.size();
      if (!read_bytes(window_changed)) {
        step = Step::kEnd;
      } else if (window_changed) {
        paint();
      } else {
        nothing_more = keys_.size() == before;
      }
    }
    if (step != Step::kGoOn) {
      // The whole text stays on the screen, without a search or the cursor in its middle.
      searching_ = false;
      if (step == Step::kLine) {
        line = buffer_.text();
        buffer_.set(line);
        paint();
      }
      write_terminal(painter_.leave());
    }
    signal = g_ending_signal;
    g_ending_signal = 0;
  }
  if (signal != 0) {
    TerminalMode::restore_first();
    ::raise(signal);
  }
  if (step == Step::kLine) {
    history_.add(line);
    return Event::kLine;
  }
  return step == Step::kInterrupted ? Event::kInterrupted : Event::kEnd;
}

void LineEditor::paint() {
  const WindowSize size = window_size();
  if (searching_) {
    const std::string prompt = fmt::format("(search) {}: ", query_);
    const std::string found = history_index_ < history_.size() ? history_[history_index_] : "";
    const std::size_t at = found.find(query_);
    write_terminal(painter_.paint(lay_out(prompt, continuation_, found, at == std::string::npos ? 0 : at, size.columns),
                                  size.columns, size.rows));
    return;
  }
  write_terminal(painter_.paint(lay_out(prompt_, continuation_, buffer_.text(), buffer_.cursor(), size.columns),
                                size.columns, size.rows));
}

void LineEditor::print_below(std::string_view text) {
  write_terminal(painter_.leave());
  write_terminal(text);
}

LineEditor::Step LineEditor::enter() {
  if (!buffer_.ends_in_backslash()) return Step::kLine;
  buffer_.erase_left();
  buffer_.insert("\n");
  return Step::kGoOn;
}

LineEditor::Step LineEditor::handle(const Key& key) {
  if (key.kind != KeyKind::kTab) tab_before_ = false;
  switch (key.kind) {
    case KeyKind::kText:
    case KeyKind::kPaste:
      buffer_.insert(key.text);
      break;
    case KeyKind::kEnter:
      return enter();
    case KeyKind::kNewLine:
      buffer_.insert("\n");
      break;
    case KeyKind::kBackspace:
      buffer_.erase_left();
      break;
    case KeyKind::kDelete:
      buffer_.erase_right();
      break;
    case KeyKind::kLeft:
      buffer_.left();
      break;
    case KeyKind::kRight:
      buffer_.right();
      break;
    case KeyKind::kUp:
      if (!buffer_.up()) older();
      break;
    case KeyKind::kDown:
      if (!buffer_.down()) newer();
      break;
    case KeyKind::kHome:
      buffer_.line_begin();
      break;
    case KeyKind::kEnd:
      buffer_.line_end();
      break;
    case KeyKind::kWordLeft:
      buffer_.word_left();
      break;
    case KeyKind::kWordRight:
      buffer_.word_right();
      break;
    case KeyKind::kDeleteWordLeft:
      buffer_.erase_word_left();
      break;
    case KeyKind::kDeleteWordRight:
      buffer_.erase_word_right();
      break;
    case KeyKind::kCutToEnd:
      buffer_.cut_to_line_end();
      break;
    case KeyKind::kCutToStart:
      buffer_.cut_to_line_begin();
      break;
    case KeyKind::kInsertCut:
      buffer_.insert_cut();
      break;
    case KeyKind::kClearScreen:
      write_terminal("\x1b[H\x1b[2J");
      painter_.forget();
      break;
    case KeyKind::kSearch:
      searching_ = true;
      query_.clear();
      new_text_ = history_index_ == history_.size() ? buffer_.text() : new_text_;
      history_index_ = history_.size();
      break;
    case KeyKind::kTab:
      complete();
      break;
    case KeyKind::kInterrupt:
      discarded_text_ = !buffer_.empty();
      write_terminal("^C");
      return Step::kInterrupted;
    case KeyKind::kEndOfInput:
      if (buffer_.empty()) return Step::kEnd;
      buffer_.erase_right();
      break;
    case KeyKind::kSuspend:
    case KeyKind::kAbort:
    case KeyKind::kOther:
      break;
  }
  return Step::kGoOn;
}

void LineEditor::show_entry(std::size_t index) {
  if (history_index_ == history_.size()) new_text_ = buffer_.text();
  history_index_ = index;
  buffer_.set(index == history_.size() ? new_text_ : history_[index]);
}

void LineEditor::older() {
  if (history_index_ > 0) show_entry(history_index_ - 1);
}

void LineEditor::newer() {
  if (history_index_ < history_.size()) show_entry(history_index_ + 1);
}

void LineEditor::search_older() {
  const std::size_t found = history_.find_before(history_index_, query_);
  if (found < history_.size()) history_index_ = found;
}

LineEditor::Step LineEditor::search_key(const Key& key) {
  const auto restart = [this] {
    history_index_ = history_.size();
    if (!query_.empty()) search_older();
  };
  switch (key.kind) {
    case KeyKind::kText:
    case KeyKind::kPaste:
      query_ += key.text;
      restart();
      return Step::kGoOn;
    case KeyKind::kBackspace: {
      EditBuffer query;
      query.set(query_);
      query.erase_left();
      query_ = query.text();
      restart();
      return Step::kGoOn;
    }
    case KeyKind::kSearch:
      search_older();
      return Step::kGoOn;
    case KeyKind::kAbort:
    case KeyKind::kInterrupt:
      searching_ = false;
      history_index_ = history_.size();
      buffer_.set(new_text_);
      return Step::kGoOn;
    default:
      // Any other key takes what was found, and Enter sends it.
      searching_ = false;
      buffer_.set(history_index_ < history_.size() ? history_[history_index_] : new_text_);
      return handle(key);
  }
}

void LineEditor::complete() {
  const bool again = std::exchange(tab_before_, true);
  if (!completer_) return;
  Completion completion = completer_(buffer_.text(), buffer_.cursor());
  if (completion.words.empty() || completion.begin > buffer_.cursor()) return;
  const std::string typed = buffer_.text().substr(completion.begin, buffer_.cursor() - completion.begin);
  if (completion.words.size() == 1) {
    const std::string& word = completion.words.front();
    // The name of a folder is not the end.
    buffer_.replace_before_cursor(completion.begin, word.ends_with('/') ? word : word + " ");
    return;
  }
  const std::string common = completion.words.front().substr(0, common_prefix(completion.words));
  if (common.size() > typed.size()) {
    buffer_.replace_before_cursor(completion.begin, common);
    return;
  }
  if (!again) return;
  std::string list;
  for (const std::string& word : completion.words) list += word + "  ";
  print_below(list + "\r\n");
}

}  // namespace hk::cli
