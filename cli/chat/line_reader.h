// Lines from the person: edited and with a history on a terminal, plain elsewhere.
//
// Layer: cli/chat.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace hk::cli {

class LineReader {
 public:
  enum class Event { kLine, kEnd, kInterrupted };

  virtual ~LineReader() = default;
  /// Reads one line without its end. kInterrupted: Ctrl-C, the line is discarded.
  virtual Event read(std::string& line) = 0;

  /// Line editing when stdin and stdout are terminals.
  static std::unique_ptr<LineReader> create(bool terminal, const std::string& prompt);
};

}  // namespace hk::cli
