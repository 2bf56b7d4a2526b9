// The slash commands of the chat.
//
// Layer: cli/chat.
#pragma once

#include <string_view>

#include "cli/line_editor/line_editor.h"

namespace hk::cli {

class Repl;

enum class CommandOutcome {
  kNoCommand,
  kDone,
  kStopped,  ///< done, and its answer was interrupted
  kQuit,
};

/// Runs `line` when it is a command. On a terminal every line that begins with / and a name is one, and an unknown one
/// gets a hint; elsewhere only known commands are, because a text may well begin with a slash. Throws hk::Error.
CommandOutcome run_command(Repl& repl, std::string_view line);

/// What may stand in the place of the last word of `text`.
Completion complete_command(Repl& repl, std::string_view text);

}  // namespace hk::cli
