// Appending, repairing and waiting (see answer_file.h).
#include "cli/batch/answer_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/write_all.h"
#include "cli/batch/line_stream.h"
#include "cli/batch/result_line.h"
#include "cli/output_check.h"
#include "cli/streams.h"
#include "engine/container/atomic_file.h"

namespace hk::cli {
namespace {

constexpr std::chrono::seconds kSyncEvery{5};
constexpr std::chrono::milliseconds kFullPause{500};
constexpr std::chrono::seconds kFullReminder{60};
// Answers may be longer than requests: many samples with log-probabilities.
constexpr std::size_t kLongestAnswer = std::size_t{1} << 30;

/// No space, now; there may be some later.
bool is_full(int error) { return error == ENOSPC || error == EDQUOT || error == EFBIG; }

}  // namespace

AnswerFile::AnswerFile(AnswerFileOptions options) : options_(std::move(options)) {
  open();
  try {
    if (options_.resume) {
      adopt();
    } else if (size_ > 0 && ::ftruncate(descriptor_, 0) != 0) {
      throw Error(fmt::format("{}: cannot be emptied: {}", options_.path, std::strerror(errno)), ErrorKind::kResource);
    } else {
      size_ = 0;
    }
  } catch (...) {
    close();
    throw;
  }
}

void AnswerFile::close() {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

AnswerFile::~AnswerFile() { close(); }

void AnswerFile::open() {
  const std::string& path = options_.path;
  refuse_inputs(path, options_.inputs);
  const bool standard = path == "-";
  struct stat status {};
  // A named pipe waits for its reader; opened for reading too, it would swallow the answers when none comes.
  const bool pipe = !standard && ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  // Reading too, for the repair. Other programs may read while it grows.
  if (!pipe)
    descriptor_ = standard ? ::dup(STDOUT_FILENO) : ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0 && !standard && (pipe || errno == EACCES || errno == EINVAL || errno == ENXIO))
    descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error(fmt::format("{}: cannot be opened for writing: {}", path, std::strerror(errno)));
  ::fstat(descriptor_, &status);
  regular_ = S_ISREG(status.st_mode) && !standard;
  size_ = regular_ ? static_cast<std::uint64_t>(status.st_size) : 0;
  const auto refuse = [&](const std::string& sentence, ErrorKind kind) {
    close();
    throw Error(sentence, kind);
  };
  if (!regular_ && options_.resume)
    refuse(fmt::format("{}: only a file can be gone on with (--resume)", path), ErrorKind::kUsage);
  if (regular_ && ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    refuse(fmt::format("{}: another process writes to it", path), ErrorKind::kInput);
  if (size_ > 0 && !options_.resume && !options_.force)
    refuse(fmt::format("{}: exists; --resume goes on with it, --force replaces it", path), ErrorKind::kInput);
}

/// Reads what is there. The usual damage is a cut last line, which is cut off; lines that are no answers between those
/// that are (a power cut on some file systems) are left out of a new file.
void AnswerFile::adopt() {
  std::uint64_t good_end = 0, answers = 0, strangers = 0, first_stranger = 0, dropped = 0;
  bool cut = false, ours_cut = false;
  {
    LineStream lines(options_.path, kLongestAnswer);
    std::string line;
    for (auto event = lines.next(line); event != LineStream::Event::kEnd; event = lines.next(line)) {
      if (event == LineStream::Event::kTail) {
        cut = true;
        constexpr std::string_view kBegin = "{\"id\":";
        const auto length = std::min(line.size(), kBegin.size());
        ours_cut = std::string_view(line).substr(0, length) == kBegin.substr(0, length) || line[0] == '\0';
        break;
      }
      const auto result = event == LineStream::Event::kLine ? read_result_line(line) : std::nullopt;
      if (!result) {
        if (strangers++ == 0) first_stranger = lines.number();
        continue;
      }
      ++answers;
      good_end = lines.offset();
      if (result->failed && options_.retry_failed) {
        ++dropped;
        continue;
      }
      std::uint64_t& known = done_[result->key];
      if (known != 0) {
        ++dropped;  // the same twice: the first stays
        continue;
      }
      known = 1;
      ++found_;
      if (result->failed) ++found_failed_;
    }
  }
  if (answers == 0 && (strangers > 0 || (cut && !ours_cut)))
    throw Error(fmt::format("{}: holds no answer of a batch (line {}); --force replaces it", options_.path,
                            std::max<std::uint64_t>(first_stranger, 1)));
  if (strangers > 0)
    write_note(fmt::format("hk-run: {}: {} damaged lines (the first is line {}) are left out", options_.path, strangers,
                           first_stranger));
  if (strangers > 0 || dropped > 0) return rewrite();
  if (!cut) return;
  write_note(fmt::format("hk-run: {}: the last line was cut; it is done again", options_.path));
  if (::ftruncate(descriptor_, static_cast<off_t>(good_end)) != 0)
    throw Error(fmt::format("{}: the cut last line cannot be removed: {}", options_.path, std::strerror(errno)),
                ErrorKind::kResource);
  size_ = good_end;
}

/// Replaces the file by one with the lines that stay.
void AnswerFile::rewrite() {
  {
    engine::AtomicFile out(options_.path);
    LineStream lines(options_.path, kLongestAnswer);
    IdTable written;
    std::string line;
    std::uint64_t offset = 0;
    for (auto event = lines.next(line); event != LineStream::Event::kEnd; event = lines.next(line)) {
      const auto result = event == LineStream::Event::kLine ? read_result_line(line) : std::nullopt;
      if (!result) continue;
      if (result->failed && options_.retry_failed) continue;
      if (std::exchange(written[result->key], 1) != 0) continue;
      line += '\n';
      out.write(offset, std::as_bytes(std::span(line)));
      offset += line.size();
    }
    out.sync();
    out.commit();
  }
  close();
  open();
}

bool AnswerFile::try_write(const std::string& text) {
  if (const auto done = write_all(descriptor_, text); done < text.size()) {
    const int error = errno;
    if (done > 0 && regular_ && ::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0)
      throw Error(fmt::format("{}: half a line was written and cannot be removed: {}; --resume does", options_.path,
                              std::strerror(errno)),
                  ErrorKind::kResource);
    errno = error;
    return false;
  }
  size_ += text.size();
  return true;
}

void AnswerFile::append(std::string line, const std::function<bool()>& stopped) {
  line += '\n';
  auto told = std::chrono::steady_clock::time_point::min();
  while (!try_write(line)) {
    const std::string reason = std::strerror(errno);
    const bool wait = options_.wait_when_full && regular_ && is_full(errno);
    if (!wait || (stopped && stopped()))
      throw Error(fmt::format("{}: cannot be written: {}; all lines in it are whole{}", options_.path, reason,
                              regular_ ? ", --resume goes on" : ""),
                  ErrorKind::kResource);
    if (const auto now = std::chrono::steady_clock::now(); now - kFullReminder > told) {
      write_note(fmt::format("hk-run: {}: {}; waiting for space", options_.path, reason));
      told = now;
    }
    std::this_thread::sleep_for(kFullPause);
  }
  if (std::chrono::steady_clock::now() - synced_ > kSyncEvery) sync();
}

void AnswerFile::sync() {
  synced_ = std::chrono::steady_clock::now();
  // A file that cannot be synced (a pipe) has nothing to lose; one whose disk fails must not look fine.
  if (regular_ && ::fdatasync(descriptor_) != 0 && errno != EINVAL)
    throw Error(fmt::format("{}: cannot be written to the disk: {}", options_.path, std::strerror(errno)),
                ErrorKind::kResource);
}

}  // namespace hk::cli
