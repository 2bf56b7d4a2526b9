// The chat loop: lines in, answers out, slash commands in between.
//
// Layer: cli/chat.
#pragma once

#include "cli/chat/conversation.h"
#include "engine/generate/generator.h"

namespace hk::cli {

struct ReplOptions {
  bool terminal = false;             ///< stdin and stdout are terminals: editing, prompt, hints
  bool statistics = false;           ///< a line on stderr after each answer
  engine::GenerateOptions generate;  ///< limits and stop strings of each answer
};

/// One question: streams the answer to stdout, ends it with a line break. True unless it was interrupted.
bool answer(Conversation& conversation, std::string question, const ReplOptions& options);
/// Until the end of the input or /quit. In plain mode every line that is not a known command is a turn, and errors end
/// it.
void run_repl(Conversation& conversation, const ReplOptions& options);

}  // namespace hk::cli
