// The lines that were typed before, kept in a file across runs.
//
// Layer: cli/line_editor. The file is for convenience: when it cannot be read or written, the history of this run still
// works. One entry a line; a line break inside an entry is written as \n, a backslash as two.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hk::cli {

class InputHistory {
 public:
  /// `path`: the file; "": none.
  explicit InputHistory(std::string path);

  /// Remembers an entry, unless it is the latest already, and appends it to the file at once.
  void add(const std::string& entry);
  std::size_t size() const { return entries_.size(); }
  const std::string& operator[](std::size_t index) const { return entries_[index]; }  ///< oldest first
  /// Index of the latest entry before `before` that contains `text`; size() when there is none.
  std::size_t find_before(std::size_t before, std::string_view text) const;

 private:
  void load();
  void append(const std::string& entry) const;

  std::string path_;
  std::vector<std::string> entries_;
};

}  // namespace hk::cli
