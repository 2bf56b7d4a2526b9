// The chat loop: messages in, answers out, slash commands in between.
//
// Layer: cli/chat.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/chat/answer_view.h"
#include "cli/chat/conversation.h"
#include "cli/chat/line_reader.h"
#include "cli/chat/session_store.h"
#include "cli/line_editor/terminal.h"
#include "cli/sampling_options.h"
#include "engine/generate/generator.h"

namespace hk::cli {

struct ReplOptions {
  bool terminal = false;    ///< stdin and stdout are terminals: editing, prompt, hints
  bool statistics = false;  ///< a line on stderr after each answer
  ViewOptions view;
  engine::GenerateOptions generate;           ///< limits and stop strings of each answer
  const SamplingOptions* sampling = nullptr;  ///< where settings come from, for /show
};

class Repl {
 public:
  /// `session` may be null: nothing is kept. The arguments must outlive it.
  Repl(Conversation& conversation, ReplOptions options, SessionFile* session);
  ~Repl();

  /// One question: streams the answer to stdout, ends it with a line break. True unless it was interrupted.
  bool ask(std::string question);
  /// The latest question again, or another in its place. There must be a turn.
  bool retry();
  bool ask_instead(std::string question);
  /// Until the end of the input or /quit. On a terminal errors are told and the chat goes on; else every line that is
  /// not a known command is a turn, and errors end it. Throws hk::Error (kInterrupted) when Ctrl-C ends it.
  void run();

  // For commands.
  Conversation& conversation() { return conversation_; }
  ReplOptions& options() { return options_; }
  const SessionFile* session() const { return session_; }
  /// A text that goes before the next question.
  void attach(std::string text) { attached_.push_back(std::move(text)); }
  void drop_attached() { attached_.clear(); }
  std::size_t attached() const { return attached_.size(); }
  /// Runs `work` with the terminal as other programs expect it.
  void with_normal_terminal(const std::function<void()>& work);
  /// "context 1234 of 4096 tokens (30 %)" with a bar.
  std::string context_meter() const;

 private:
  using Work = std::function<engine::GenerateResult(engine::GenerateOptions, const AskCallbacks&)>;
  bool answer(const Work& work);
  void tell_ending(const engine::GenerateResult& result);
  void warn_of_context();
  void save_memory();
  bool handle_line(std::string line);

  Conversation& conversation_;
  ReplOptions options_;
  SessionFile* session_;
  std::unique_ptr<engine::StateFile> memory_;  // null: not kept
  std::unique_ptr<TerminalMode> quiet_;
  std::vector<std::string> attached_;
  bool warned_ = false;
  int interrupts_ = 0;  // in a row
};

/// What the memory of a conversation depends on besides its tokens.
std::uint64_t memory_identity(const RunningModel& running);

}  // namespace hk::cli
