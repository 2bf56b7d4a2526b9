// The slash commands of the chat.
//
// Layer: cli/chat.
#pragma once

#include <string_view>

#include "cli/chat/conversation.h"

namespace hk::cli {

enum class CommandOutcome { kNoCommand, kDone, kQuit };

/// Runs `line` when it is a command. On a terminal every line that begins with / is one, and an unknown one gets a
/// hint; elsewhere only known commands are, because a text may well begin with a slash.
CommandOutcome run_command(Conversation& conversation, std::string_view line, bool terminal);

}  // namespace hk::cli
