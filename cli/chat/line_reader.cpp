// The two readers of messages.
#include "cli/chat/line_reader.h"

#include <cstdio>
#include <iostream>
#include <utility>

namespace hk::cli {
namespace {

class PlainReader : public LineReader {
 public:
  Event read(std::string& line) override {
    if (!std::getline(std::cin, line)) return Event::kEnd;
    if (line.ends_with('\r')) line.pop_back();
    return Event::kLine;
  }
};

class EditingReader : public LineReader {
 public:
  EditingReader(bool colours, const std::string& history_path, LineEditor::Completer completer)
      : editor_(colours ? "\x1b[1m>\x1b[0m " : "> ", "  ", history_path, std::move(completer)) {}
  Event read(std::string& line) override {
    std::fflush(stdout);  // the editor writes past it
    return editor_.read(line);
  }
  bool discarded_text() const override { return editor_.discarded_text(); }

 private:
  LineEditor editor_;
};

}  // namespace

std::unique_ptr<LineReader> LineReader::plain() { return std::make_unique<PlainReader>(); }

std::unique_ptr<LineReader> LineReader::editing(bool colours, const std::string& history_path,
                                                LineEditor::Completer completer) {
  return std::make_unique<EditingReader>(colours, history_path, std::move(completer));
}

}  // namespace hk::cli
