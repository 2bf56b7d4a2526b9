// Where the parts of a generation go: the answer to stdout as it comes, progress to stderr; and whole texts read in.
//
// Layer: cli.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace hk::cli {

/// Gives closed standard streams a place: else the next file to be opened would be taken for one of them, and notes for
/// stderr be written into it. Reading and writing them stays an error. To be called first.
void occupy_standard_streams();
bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Writes and flushes, so that a reader sees each piece at once. Throws hk::Error (kind kResource) when it cannot be
/// written.
void write_answer(std::string_view text);
/// One line on stderr.
void write_note(std::string_view line);
/// Text on stderr as it is; what cannot be written is left out.
void write_aside(std::string_view text);

inline constexpr std::size_t kMostText = std::size_t{1} << 30;
/// Content of a file, or of standard input for "-". Throws hk::Error, also when it is longer than `limit`: a device or
/// a pipe may never end.
std::string read_text(const std::string& path, std::size_t limit = kMostText);

/// "reading the prompt: 512 of 2048 tokens" on a terminal, redrawn in place; nothing elsewhere or for what is quick.
class PrefillProgress {
 public:
  ~PrefillProgress() { clear(); }
  void update(std::size_t done, std::size_t total);
  void clear();

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
  bool drawn_ = false;
};

}  // namespace hk::cli
