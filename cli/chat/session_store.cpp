// Session files (see session_store.h).
#include "cli/chat/session_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/write_all.h"
#include "cli/chat/chat_json.h"
#include "cli/streams.h"
#include "engine/container/atomic_file.h"

namespace hk::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 1;
constexpr std::size_t kLongestName = 100;  // file names may be 255 bytes long, with an ending

fs::path sessions_folder() {
  const fs::path folder = state_folder();
  if (folder.empty())
    throw Error("sessions: neither HK_STATE_DIR nor XDG_STATE_HOME nor HOME says where they are kept",
                ErrorKind::kUsage);
  return folder / "sessions";
}

void check_name(const std::string& name) {
  const auto good = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  };
  if (!name.empty() && name.size() <= kLongestName && name[0] != '.' && name[0] != '-' &&
      std::all_of(name.begin(), name.end(), good))
    return;
  throw Error(fmt::format("--session: '{}' is no name for a session; expected letters, digits, - _ and . (at most {})",
                          name, kLongestName),
              ErrorKind::kUsage);
}

/// The lock file of a session, locked; -1 when another process has it.
int take_lock(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) throw Error(fmt::format("{}: cannot be opened: {}", path.string(), std::strerror(errno)));
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  ::close(file);
  return -1;
}

[[noreturn]] void refuse_in_use(const std::string& name) {
  throw Error(fmt::format("the session '{}' is in use by another process", name));
}

std::string header_line(const std::string& model, const ChatState& state) {
  return json_text(Json{{"hk_chat_session", kVersion}, {"model", model}, {"state", state_json(state)}}) + "\n";
}

/// A question and what there is of its answer.
struct Draft {
  ChatTurn turn;
  bool asked = false;
};

void read_record(const Json& record, SessionContent& content, Draft& draft) {
  if (!record.is_object()) throw Error("expected an object");
  if (const auto question = record.find("question"); question != record.end()) {
    draft = {};
    draft.asked = true;
    draft.turn.question = field_text(*question, "question");
  } else if (const auto answer = record.find("answer"); answer != record.end()) {
    draft.turn.answer += field_text(*answer, "answer");
  } else if (const auto reasoning = record.find("reasoning"); reasoning != record.end()) {
    draft.turn.reasoning += field_text(*reasoning, "reasoning");
  } else if (const auto turn = record.find("turn"); turn != record.end()) {
    draft = {};
    content.state.branch().turns.push_back(turn_from_json(*turn));
  } else {
    throw Error("expected 'question', 'answer', 'reasoning' or 'turn'");
  }
}

}  // namespace

fs::path state_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path own = variable("HK_STATE_DIR"); !own.empty()) return own;
  if (const fs::path xdg = variable("XDG_STATE_HOME"); xdg.is_absolute()) return xdg / "hk";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".local/state/hk";
  return {};
}

SessionContent parse_session(std::string_view text, const std::string& file) {
  SessionContent content;
  Draft draft;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    // A kill may have cut the last line. The first one is written as a whole.
    if (end == std::string_view::npos && number > 1) break;
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    try {
      const Json record = parse_json_line(line);
      if (number > 1) {
        read_record(record, content, draft);
        continue;
      }
      const auto version = record.is_object() ? record.find("hk_chat_session") : record.end();
      if (!record.is_object() || version == record.end()) throw Error("this is no session file");
      if (*version != kVersion) throw Error(fmt::format("the file's version is not {}", kVersion));
      content.model = field_text(record.value("model", Json("")), "model");
      content.state = state_from_json(record.value("state", Json()));
    } catch (const Error& error) {
      throw Error(fmt::format("{}, line {}: {}", file, number, error.what()));
    }
  }
  if (number == 0) throw Error(fmt::format("{}: the file is empty", file));
  if (draft.asked && (!draft.turn.answer.empty() || !draft.turn.reasoning.empty())) {
    draft.turn.ending = "cut";
    content.state.branch().turns.push_back(std::move(draft.turn));
    content.answer_cut = true;
  }
  return content;
}

SessionFile::SessionFile(const std::string& name, std::string model) : name_(name), model_(std::move(model)) {
  check_name(name);
  const fs::path folder = sessions_folder();
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) throw Error(fmt::format("{}: cannot be made: {}", folder.string(), problem.message()));
  path_ = folder / (name + ".jsonl");
  lock_ = take_lock(folder / (name + ".lock"));
  if (lock_ < 0) refuse_in_use(name);
  existed_ = fs::exists(path_, problem);
  try {
    if (existed_) content_ = parse_session(read_text(path_.string()), path_.string());
    // What was cut is whole again from here on.
    rewrite(content_.state);
  } catch (...) {
    ::close(lock_);
    throw;
  }
}

SessionFile::~SessionFile() {
  if (file_ >= 0) ::close(file_);
  ::close(lock_);
}

std::string SessionFile::memory_path() const { return fs::path(path_).replace_extension(".kv").string(); }

void SessionFile::rewrite(const ChatState& state) {
  const std::string text = header_line(model_, state);
  {
    engine::AtomicFile out(path_.string());
    out.write(0, std::as_bytes(std::span(text)));
    out.sync();
    out.commit();
  }
  ::chmod(path_.c_str(), 0600);  // what people talk about is theirs
  if (file_ >= 0) ::close(file_);
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file_ < 0)
    throw Error(fmt::format("{}: cannot be opened: {}", path_.string(), std::strerror(errno)), ErrorKind::kResource);
}

void SessionFile::append(const std::string& line, bool sync) {
  if (write_all(file_, line) < line.size())
    throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)), ErrorKind::kResource);
  if (sync) ::fdatasync(file_);
}

void SessionFile::question_asked(const std::string& question) {
  append(json_text(Json{{"question", question}}) + "\n", false);
}

void SessionFile::text_came(std::string_view text, bool reasoning) {
  append(json_text(Json{{reasoning ? "reasoning" : "answer", text}}) + "\n", false);
}

void SessionFile::turn_ended(const ChatState& state) {
  append(json_text(Json{{"turn", turn_json(state.branch().turns.back())}}) + "\n", true);
}

void SessionFile::state_changed(const ChatState& state) { rewrite(state); }

std::vector<SessionInfo> list_sessions() {
  std::vector<SessionInfo> list;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(sessions_folder(), problem)) {
    if (entry.path().extension() != ".jsonl") continue;
    SessionInfo info;
    info.name = entry.path().stem().string();
    info.changed = entry.last_write_time(problem);
    for (const char* ending : {".jsonl", ".kv"}) {
      const auto bytes = fs::file_size(fs::path(entry.path()).replace_extension(ending), problem);
      if (!problem) info.bytes += bytes;
    }
    const int lock = ::open(fs::path(entry.path()).replace_extension(".lock").c_str(), O_RDWR | O_CLOEXEC);
    info.in_use = lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) != 0;
    if (lock >= 0) ::close(lock);
    try {
      const auto content = parse_session(read_text(entry.path().string()), entry.path().string());
      info.model = content.model;
      const auto& turns = content.state.branch().turns;
      info.turns = turns.size();
      if (!turns.empty()) info.beginning = turns.front().question;
    } catch (const Error& error) {
      info.problem = error.what();
    }
    list.push_back(std::move(info));
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

void remove_session(const std::string& name) {
  check_name(name);
  const fs::path base = sessions_folder() / name;
  std::error_code problem;
  if (!fs::exists(fs::path(base).concat(".jsonl"), problem))
    throw Error(fmt::format("there is no session '{}' in {}", name, base.parent_path().string()));
  const int lock = take_lock(fs::path(base).concat(".lock"));
  if (lock < 0) refuse_in_use(name);
  for (const char* ending : {".kv", ".jsonl", ".lock"}) fs::remove(fs::path(base).concat(ending), problem);
  ::close(lock);
}

}  // namespace hk::cli
