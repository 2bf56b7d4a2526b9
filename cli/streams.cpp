// Standard streams of the generating commands.
#include "cli/streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/write_all.h"
#include "cli/text.h"

namespace hk::cli {
namespace {

// A prompt that is read faster than this needs no progress line.
constexpr std::chrono::milliseconds kQuick{300};
constexpr std::chrono::milliseconds kInterval{100};

std::string read_all(std::FILE* file, std::string_view name, std::size_t limit) {
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) {
    text.append(buffer, n);
    if (text.size() > limit)
      throw Error(fmt::format("{}: is longer than {}, the most that is read at once", name, bytes_text(limit)));
  }
  if (std::ferror(file) != 0) throw Error(fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  return text;
}

}  // namespace

void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one; the wrong way to use it stays one.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) return;
  }
}

bool stdin_is_terminal() { return isatty(STDIN_FILENO) == 1; }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) == 1; }

void write_answer(std::string_view text) {
  // Past stdio: its buffers lose what a signal interrupts.
  if (std::fflush(stdout) == 0 && write_all(STDOUT_FILENO, text) == text.size()) return;
  throw Error(fmt::format("cannot write the answer: {}", std::strerror(errno)), ErrorKind::kResource);
}

void write_note(std::string_view line) { write_aside(fmt::format("{}\n", line)); }

void write_aside(std::string_view text) { write_all(STDERR_FILENO, text); }  // stdio does not buffer stderr either

std::string read_text(const std::string& path, std::size_t limit) {
  if (path == "-") return read_all(stdin, "standard input", limit);
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  struct Close {
    std::FILE* file;
    ~Close() { std::fclose(file); }
  } close{file};
  return read_all(file, path, limit);
}

void PrefillProgress::update(std::size_t done, std::size_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!stderr_is_terminal() || now - start_ < kQuick || (now - last_ < kInterval && done < total)) return;
  last_ = now;
  write_aside(fmt::format("\r\x1b[Kreading the prompt: {} of {} tokens", done, total));
  drawn_ = true;
}

void PrefillProgress::clear() {
  if (!drawn_) return;
  write_aside("\r\x1b[K");
  drawn_ = false;
}

}  // namespace hk::cli
