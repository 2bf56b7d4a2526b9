// The file of answers: whole lines only, whatever happens; and what an earlier run has left in it.
//
// Layer: cli/batch. A line is one write at the end of the file. What a kill or a full disk leaves of a line is cut off
// again: at once, or by the next run that goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/batch/id_table.h"

namespace hk::cli {

struct AnswerFileOptions {
  std::string path;                      ///< "-": standard output
  bool resume = false;                   ///< keep what is there
  bool retry_failed = false;             ///< of that, not the errors
  bool force = false;                    ///< an existing file is replaced
  bool wait_when_full = true;            ///< for disk space, instead of stopping
  std::vector<std::string> inputs = {};  ///< files that must not be written to; "-": standard input
};

class AnswerFile {
 public:
  /// Opens and locks the file, and repairs its end. Throws hk::Error when it is in use, exists though it should not, or
  /// holds something else.
  explicit AnswerFile(AnswerFileOptions options);
  ~AnswerFile();
  AnswerFile(const AnswerFile&) = delete;
  AnswerFile& operator=(const AnswerFile&) = delete;

  /// Whether an earlier run has answered this (see InputLine::key).
  bool has(std::string_view key) const { return done_.find(key) != 0; }
  std::uint64_t found() const { return found_; }                ///< answers and errors of earlier runs
  std::uint64_t found_failed() const { return found_failed_; }  ///< errors among them

  /// Appends the line and a line end, all of it or nothing. `stopped` ends a wait for disk space. Throws hk::Error.
  void append(std::string line, const std::function<bool()>& stopped);
  /// Makes sure that what was appended survives a power cut. Also done every few seconds.
  void sync();

 private:
  void open();
  void adopt();
  void rewrite();
  void close();
  bool try_write(const std::string& text);

  AnswerFileOptions options_;
  int descriptor_ = -1;
  bool regular_ = false;
  std::uint64_t size_ = 0;
  IdTable done_;
  std::uint64_t found_ = 0, found_failed_ = 0;
  std::chrono::steady_clock::time_point synced_ = std::chrono::steady_clock::now();
};

}  // namespace hk::cli
