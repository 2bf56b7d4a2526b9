// From lines to requests with ids (see request_reader.h).
#include "cli/batch/request_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace hk::cli {
namespace {

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r") == std::string::npos; }

/// The id field of the object, or null.
const Json* find_id(const Json& object) {
  for (const char* name : {"custom_id", "id"}) {
    const auto found = object.find(name);
    if (found != object.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  const auto slash = text.find('/');
  const auto number = [](std::string_view digits, std::uint64_t& value) {
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return problem == std::errc{} && end == digits.data() + digits.size();
  };
  const bool fine = slash != std::string::npos && number(std::string_view(text).substr(0, slash), shard.index) &&
                    number(std::string_view(text).substr(slash + 1), shard.count);
  if (!fine || shard.index < 1 || shard.index > shard.count)
    throw Error(fmt::format("--shard: '{}' is no part of a whole; expected i/n with i from 1 to n, such as 2/8", text),
                ErrorKind::kUsage);
  --shard.index;
  return shard;
}

InputLine::InputLine() = default;
InputLine::~InputLine() = default;
InputLine::InputLine(InputLine&&) noexcept = default;
InputLine& InputLine::operator=(InputLine&&) noexcept = default;

std::string InputLine::key() const { return id_json == "null" ? fmt::format("l{}", number) : "i" + id; }

RequestReader::RequestReader(const std::string& path, bool text, Shard shard)
    : stream_(path), text_(text), shard_(shard) {}

RequestReader::Event RequestReader::next(InputLine& line, bool wait) {
  std::string text;
  while (true) {
    const auto event = stream_.next(text, wait);
    if (event == LineStream::Event::kNotYet) return Event::kNotYet;
    if (event == LineStream::Event::kEnd) return Event::kEnd;
    if (stream_.number() == 1 && text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // byte order mark
    if (text.ends_with('\r')) text.pop_back();
    if (event != LineStream::Event::kTooLong && is_blank(text)) continue;
    if (read(text, event, line)) return Event::kLine;
  }
}

/// False when the line belongs to another shard.
bool RequestReader::read(const std::string& text, LineStream::Event event, InputLine& line) {
  line = InputLine();
  line.number = stream_.number();
  line.bytes = text.size();
  line.id = line.id_json = std::to_string(line.number);
  try {
    if (event == LineStream::Event::kTooLong) throw Error(fmt::format("longer than {} bytes", kLongestLine));
    if (text_) {
      if (!is_valid_utf8(text)) throw Error("not valid UTF-8");
      line.object = std::make_unique<Json>(Json::object());
      (*line.object)["prompt"] = text;
    } else {
      line.object = std::make_unique<Json>(parse_json_line(text));
      if (!line.object->is_object()) throw Error("not a JSON object");
      if (const Json* id = find_id(*line.object)) {
        if (!id->is_string() && !id->is_number_integer()) refuse_field(*id, "id", "a text or a whole number");
        line.id_json = json_text(*id);
        line.id = id->is_string() ? id->get<std::string>() : line.id_json;
        if (line.id.empty()) throw Error("the id is empty");
      }
    }
  } catch (const Error& error) {
    line.id = std::to_string(line.number);
    line.id_json = "null";
    line.object.reset();
    line.problem_type = "malformed";
    line.problem = fmt::format("line {}: {}", line.number, error.what());
  }
  if (shard_of(line.id, shard_.count) != shard_.index) return false;
  if (!line.problem.empty()) return true;
  std::uint64_t& first = seen_[line.id];
  if (first != 0) {
    line.problem_type = "duplicate_id";
    line.problem = fmt::format("line {}: the id {} was used before, in line {}", line.number, line.id_json, first);
    line.id_json = "null";
    line.object.reset();
    return true;
  }
  first = line.number;
  return true;
}

}  // namespace hk::cli
