// The two line readers: libedit and std::getline.
#include "cli/chat/line_reader.h"

#include <histedit.h>
#include <langinfo.h>

#include <clocale>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string_view>

#include "base/error.h"

namespace hk::cli {
namespace {

constexpr int kHistoryLines = 1000;

class PlainReader : public LineReader {
 public:
  Event read(std::string& line) override {
    if (!std::getline(std::cin, line)) return Event::kEnd;
    if (line.ends_with('\r')) line.pop_back();
    return Event::kLine;
  }
};

volatile std::sig_atomic_t g_interrupted = 0;
void on_interrupt(int) { g_interrupted = 1; }

/// While one exists, Ctrl-C interrupts a waiting read instead of ending the program.
class InterruptibleRead {
 public:
  InterruptibleRead() {
    g_interrupted = 0;
    struct sigaction action {};
    action.sa_handler = on_interrupt;  // no SA_RESTART: the read returns
    ::sigaction(SIGINT, &action, &old_);
  }
  ~InterruptibleRead() { ::sigaction(SIGINT, &old_, nullptr); }

 private:
  struct sigaction old_ {};
};

class EditingReader : public LineReader {
 public:
  explicit EditingReader(std::string prompt) : prompt_(std::move(prompt)) {
    // Editing counts characters, for which the C locale would count bytes.
    std::setlocale(LC_CTYPE, "");
    if (std::string_view(nl_langinfo(CODESET)) != "UTF-8") std::setlocale(LC_CTYPE, "C.UTF-8");
    edit_ = el_init("hk-run", stdin, stdout, stderr);
    history_ = history_init();
    if (edit_ == nullptr || history_ == nullptr) throw Error("the line editor cannot be started", ErrorKind::kResource);
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(
        edit_, EL_PROMPT, +[](EditLine* edit) {
          EditingReader* self = nullptr;
          el_get(edit, EL_CLIENTDATA, &self);
          return self->prompt_.data();
        });
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_SIGNAL, 1);  // puts the terminal back when a signal ends the program
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_source(edit_, nullptr);
  }
  ~EditingReader() override {
    if (history_ != nullptr) history_end(history_);
    if (edit_ != nullptr) el_end(edit_);
  }
  EditingReader(const EditingReader&) = delete;
  EditingReader& operator=(const EditingReader&) = delete;

  Event read(std::string& line) override {
    const InterruptibleRead guard;
    int count = 0;
    const char* text = el_gets(edit_, &count);
    if (g_interrupted != 0) {
      el_reset(edit_);
      std::fputs("\n", stdout);
      return Event::kInterrupted;
    }
    if (text == nullptr || count <= 0) {
      std::fputs("\n", stdout);
      return Event::kEnd;
    }
    line.assign(text, static_cast<std::size_t>(count));
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    if (!line.empty()) {
      HistEvent event;
      history(history_, &event, H_ENTER, line.c_str());
    }
    return Event::kLine;
  }

 private:
  std::string prompt_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineReader> LineReader::create(bool terminal, const std::string& prompt) {
  if (terminal) return std::make_unique<EditingReader>(prompt);
  return std::make_unique<PlainReader>();
}

}  // namespace hk::cli
