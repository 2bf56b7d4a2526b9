// History file (see input_history.h).
#include "cli/line_editor/input_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "base/write_all.h"
#include "engine/container/atomic_file.h"

namespace hk::cli {
namespace {

constexpr std::size_t kEntries = 1000;            // kept in memory and, when it is cut, in the file
constexpr std::size_t kFileLines = 2 * kEntries;  // from here on the file is cut
constexpr std::size_t kLongestEntry = 1 << 16;    // longer ones (whole files) are remembered for this run only

std::string escaped(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\\') line += '\\';
    if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  line += '\n';
  return line;
}

std::string unescaped(std::string_view line) {
  std::string entry;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      entry += line[i];
      continue;
    }
    ++i;
    entry += line[i] == 'n' ? '\n' : line[i];
  }
  return entry;
}

}  // namespace

InputHistory::InputHistory(std::string path) : path_(std::move(path)) {
  if (!path_.empty()) load();
}

void InputHistory::load() {
  std::ifstream file(path_, std::ios::binary);
  std::size_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    ++lines;
    // A kill may have cut the last line; another program may have written anything.
    if (file.eof() || line.empty() || !is_valid_utf8(line) || line.find('\0') != std::string::npos) continue;
    entries_.push_back(unescaped(line));
  }
  if (entries_.size() > kEntries) entries_.erase(entries_.begin(), entries_.end() - kEntries);
  if (lines <= kFileLines) return;
  std::string text;
  for (const std::string& entry : entries_) text += escaped(entry);
  try {
    engine::AtomicFile out(path_);
    out.write(0, std::as_bytes(std::span(text)));
    out.sync();
    out.commit();
  } catch (const Error&) {
    // It stays long.
  }
}

void InputHistory::append(const std::string& entry) const {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string line = escaped(entry);
  // One write, so that several chats can share the file.
  write_all(file, line);  // else the entry is lost for later runs, which is no reason to stop
  ::close(file);
}

void InputHistory::add(const std::string& entry) {
  if (entry.empty() || (!entries_.empty() && entries_.back() == entry)) return;
  entries_.push_back(entry);
  if (entries_.size() > kEntries) entries_.erase(entries_.begin());
  if (!path_.empty() && entry.size() <= kLongestEntry) append(entry);
}

std::size_t InputHistory::find_before(std::size_t before, std::string_view text) const {
  for (std::size_t i = std::min(before, entries_.size()); i-- > 0;)
    if (entries_[i].find(text) != std::string::npos) return i;
  return entries_.size();
}

}  // namespace hk::cli
