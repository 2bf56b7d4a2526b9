// The lines of a request file: which id each has, which belong to this shard, and which are no requests at all.
//
// Layer: cli/batch. Running and merging read the file through this one class, so both see the same requests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cli/batch/id_table.h"
#include "cli/batch/line_stream.h"
#include "cli/json_fields.h"

namespace hk::cli {

struct Shard {
  std::uint64_t index = 0;  ///< from 0
  std::uint64_t count = 1;
};
/// "2/8", from 1 to the count. Throws hk::Error (usage).
Shard parse_shard(const std::string& text);

struct InputLine {
  InputLine();
  ~InputLine();
  InputLine(InputLine&&) noexcept;
  InputLine& operator=(InputLine&&) noexcept;

  std::uint64_t number = 0;
  std::size_t bytes = 0;  ///< length of the line
  std::string id;         ///< `id`, `custom_id` or the line number, as text
  std::string id_json;    ///< as it is written in the answer; "null" for a line that has no id of its own to answer to
  std::unique_ptr<Json> object;
  std::string problem_type;  ///< "malformed" or "duplicate_id": then there is no object
  std::string problem;       ///< a sentence

  /// What identifies its answer: "i" and the id, or "l" and the line number for lines without a usable id.
  std::string key() const;
};

class RequestReader {
 public:
  enum class Event { kLine, kNotYet, kEnd };

  /// `text`: every line is a prompt. Blank lines are passed over in any case.
  RequestReader(const std::string& path, bool text, Shard shard);

  /// The next line of the shard. `wait` as in LineStream.
  Event next(InputLine& line, bool wait = true);
  const LineStream& stream() const { return stream_; }

 private:
  bool read(const std::string& text, LineStream::Event event, InputLine& line);

  LineStream stream_;
  bool text_;
  Shard shard_;
  IdTable seen_;  // id to line number
};

}  // namespace hk::cli
