// Lines of a file or a pipe, one at a time, however large the whole is.
//
// Layer: cli/batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hk::cli {

/// Longest line that is taken in; a longer one is reported, not stored.
inline constexpr std::size_t kLongestLine = std::size_t{16} << 20;

class LineStream {
 public:
  enum class Event {
    kLine,     ///< a whole line, without its end
    kTail,     ///< the last line, when no line end follows it
    kTooLong,  ///< a line beyond the limit was passed over
    kNotYet,   ///< nothing to read now (only when not asked to wait)
    kEnd,
  };

  /// "-": standard input. Throws hk::Error.
  explicit LineStream(const std::string& path, std::size_t longest = kLongestLine);
  ~LineStream();
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  /// `wait`: a while for more from a pipe; kNotYet when none came or a signal did. Throws hk::Error when reading fails.
  Event next(std::string& line, bool wait = true);
  std::uint64_t number() const { return number_; }             ///< of the last line, from 1
  std::uint64_t line_begin() const { return begin_; }          ///< offset of the last line
  std::uint64_t offset() const { return offset_; }             ///< bytes behind the last line
  std::optional<std::uint64_t> size() const { return size_; }  ///< of a regular file
  const std::string& path() const { return path_; }

 private:
  enum class Fill { kData, kEnd, kNotYet };
  Fill fill(bool wait);
  Event take(std::string& line, Event event);

  std::string path_;
  std::size_t longest_;
  int descriptor_ = -1;
  std::optional<std::uint64_t> size_;
  std::vector<char> buffer_;
  std::size_t used_ = 0, filled_ = 0;
  std::string line_;       // begin of a line whose end has not come yet
  bool too_long_ = false;  // the current line is
  bool ended_ = false;
  std::uint64_t number_ = 0, begin_ = 0, offset_ = 0, consumed_ = 0;
};

/// Lines in a regular file when counting them takes no time worth mentioning; absent for large files and pipes.
std::optional<std::uint64_t> count_lines(const std::string& path);

}  // namespace hk::cli
