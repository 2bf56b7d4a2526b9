// The functions behind the slash commands, by the file they are in.
//
// Layer: cli/chat, part of the commands. Each takes what follows the command's name, without blanks around it, and
// throws hk::Error for what it cannot use.
#pragma once

#include <string_view>
#include <vector>

#include "cli/chat/commands.h"
#include "cli/chat/repl.h"

namespace hk::cli {

using CommandFunction = CommandOutcome(Repl& repl, std::string_view rest);

// commands_turns.cpp: the conversation
CommandFunction clear_turns, undo_turn, retry_turn, edit_turn, branch_turns, compact_turns, set_system;
// commands_settings.cpp: how answers are made and shown
CommandFunction set_setting, show_settings, think_mode, show_statistics, show_context;
// commands_files.cpp: files
CommandFunction save_chat, load_chat, read_file;

/// Names that /set takes.
std::vector<std::string_view> setting_names();

}  // namespace hk::cli
