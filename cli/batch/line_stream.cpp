// Buffered reading of lines (see line_stream.h).
#include "cli/batch/line_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace hk::cli {
namespace {

constexpr std::size_t kBuffer = 1 << 18;
constexpr int kWaitMs = 200;  // a signal right before the wait is seen this much later
constexpr std::uint64_t kQuickToCount = std::uint64_t{256} << 20;

}  // namespace

LineStream::LineStream(const std::string& path, std::size_t longest)
    : path_(path == "-" ? "standard input" : path), longest_(longest), buffer_(kBuffer) {
  descriptor_ = path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw Error(fmt::format("{}: cannot be opened: {}", path_, std::strerror(errno)));
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      ::close(descriptor_);
      throw Error(fmt::format("{}: is a folder; a file of lines was expected", path_));
    }
    if (S_ISREG(status.st_mode)) size_ = static_cast<std::uint64_t>(status.st_size);
  }
}

LineStream::~LineStream() { ::close(descriptor_); }

LineStream::Fill LineStream::fill(bool wait) {
  if (ended_) return Fill::kEnd;
  if (!size_) {
    pollfd ask{descriptor_, POLLIN, 0};
    if (::poll(&ask, 1, wait ? kWaitMs : 0) <= 0) return Fill::kNotYet;
  }
  const auto got = ::read(descriptor_, buffer_.data(), buffer_.size());
  if (got < 0) {
    if (errno == EINTR || errno == EAGAIN) return Fill::kNotYet;
    throw Error(fmt::format("{}: cannot be read: {}", path_, std::strerror(errno)));
  }
  used_ = 0;
  filled_ = static_cast<std::size_t>(got);
  ended_ = got == 0;
  return ended_ ? Fill::kEnd : Fill::kData;
}

LineStream::Event LineStream::next(std::string& line, bool wait) {
  while (true) {
    if (used_ == filled_) {
      const Fill filled = fill(wait);
      if (filled == Fill::kNotYet) return Event::kNotYet;
      if (filled == Fill::kEnd) return consumed_ == offset_ ? Event::kEnd : take(line, Event::kTail);
    }
    const char* from = buffer_.data() + used_;
    const auto* end = static_cast<const char*>(std::memchr(from, '\n', filled_ - used_));
    const std::size_t length = end == nullptr ? filled_ - used_ : static_cast<std::size_t>(end - from);
    const std::size_t step = length + (end == nullptr ? 0 : 1);
    used_ += step;
    consumed_ += step;
    too_long_ = too_long_ || line_.size() + length > longest_;
    if (too_long_) {
      line_.clear();
    } else {
      line_.append(from, length);
    }
    if (end != nullptr) return take(line, Event::kLine);
  }
}

/// Hands over the line that has just ended.
LineStream::Event LineStream::take(std::string& line, Event event) {
  ++number_;
  begin_ = std::exchange(offset_, consumed_);
  line = std::exchange(line_, {});
  return std::exchange(too_long_, false) ? Event::kTooLong : event;
}

std::optional<std::uint64_t> count_lines(const std::string& path) {
  if (path == "-") return std::nullopt;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (static_cast<std::uint64_t>(status.st_size) > kQuickToCount) return std::nullopt;
  LineStream lines(path);
  std::string line;
  while (lines.next(line) != LineStream::Event::kEnd) {
  }
  return lines.number();
}

}  // namespace hk::cli
