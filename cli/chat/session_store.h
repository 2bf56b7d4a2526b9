// Chats that go on: where session files are, what they hold, and that only one process writes each.
//
// Layer: cli/chat. A session NAME is three files in one folder. NAME.jsonl is the chat, a JSON object a line: the first
// is a header with the whole state, later ones append what happened since, so that a kill at any moment loses at most
// the words that were not written yet. Changes of the past rewrite the file atomically. NAME.kv is what the model
// remembers (engine/generate/state_file.h), a cache. NAME.lock is locked while a process uses the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/chat/chat_state.h"

namespace hk::cli {

/// HK_STATE_DIR, or hk in XDG_STATE_HOME or ~/.local/state; empty when there is none of them.
std::filesystem::path state_folder();

struct SessionInfo {
  std::string name;
  std::string model;        ///< general.name or file name
  std::size_t turns = 0;    ///< of the current branch
  std::string beginning;    ///< first question
  std::uint64_t bytes = 0;  ///< of all its files
  std::filesystem::file_time_type changed;
  bool in_use = false;
  std::string problem;  ///< why it cannot be read; "" when it can
};
/// By name.
std::vector<SessionInfo> list_sessions();
/// Throws hk::Error when there is no such session or it is in use.
void remove_session(const std::string& name);

/// What a session's text says. Never throws for the end of it: a last line that was cut is left out.
struct SessionContent {
  std::string model;
  ChatState state;
  bool answer_cut = false;  ///< the process ended within an answer, which is the latest turn as far as it went
};
/// Throws hk::Error that names the line.
SessionContent parse_session(std::string_view text, const std::string& file);

/// One session in use by this process.
class SessionFile : public ChatListener {
 public:
  /// Opens the session or begins a new one. Throws hk::Error for a name that cannot be a file's, a file that cannot be
  /// read, and a session that another process uses.
  SessionFile(const std::string& name, std::string model);
  ~SessionFile() override;
  SessionFile(const SessionFile&) = delete;
  SessionFile& operator=(const SessionFile&) = delete;

  const std::string& name() const { return name_; }
  bool existed() const { return existed_; }
  const SessionContent& content() const { return content_; }  ///< as it was when it was opened
  std::string memory_path() const;

  void question_asked(const std::string& question) override;
  void text_came(std::string_view text, bool reasoning) override;
  void turn_ended(const ChatState& state) override;
  void state_changed(const ChatState& state) override;

 private:
  void rewrite(const ChatState& state);
  void append(const std::string& line, bool sync);

  std::string name_, model_;
  std::filesystem::path path_;
  int lock_ = -1;
  int file_ = -1;
  bool existed_ = false;
  SessionContent content_;
};

}  // namespace hk::cli
