// Runs $EDITOR on a temporary file.
#include "cli/chat/text_editor.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/write_all.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

/// A file of this process alone, removed on destruction.
class TemporaryText {
 public:
  explicit TemporaryText(const std::string& text) {
    path_ = (std::filesystem::temp_directory_path() / "hk-message-XXXXXX.md").string();
    const int file = ::mkstemps(path_.data(), 3);
    if (file < 0) fail();
    const bool written = write_all(file, text) == text.size();
    ::close(file);
    if (!written) fail();
  }
  ~TemporaryText() { ::unlink(path_.c_str()); }
  TemporaryText(const TemporaryText&) = delete;
  TemporaryText& operator=(const TemporaryText&) = delete;
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail() const {
    throw Error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)), ErrorKind::kResource);
  }
  std::string path_;
};

std::string editor_command() {
  for (const char* variable : {"VISUAL", "EDITOR"})
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return value;
  for (const char* program : {"/usr/bin/nano", "/usr/bin/vi"})
    if (::access(program, X_OK) == 0) return program;
  throw Error("no editor is known: set EDITOR to one");
}

}  // namespace

std::optional<std::string> edit_in_editor(const std::string& text) {
  const std::string command = editor_command() + " \"$1\"";
  const TemporaryText file(text);
  // Ctrl-C in the editor is the editor's.
  const auto old_interrupt = std::signal(SIGINT, SIG_IGN);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGINT, SIG_DFL);
    // By the shell: EDITOR may have arguments.
    ::execl("/bin/sh", "sh", "-c", command.c_str(), "sh", file.path().c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGINT, old_interrupt);
  if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  std::string edited = read_text(file.path());
  // Editors end the last line.
  while (edited.ends_with('\n') || edited.ends_with('\r')) edited.pop_back();
  return edited;
}

}  // namespace hk::cli
