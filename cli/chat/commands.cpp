// Slash commands: a table of names, help and what they do.
#include "cli/chat/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "cli/streams.h"

namespace hk::cli {
namespace {

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view help;
  CommandOutcome (*run)(Conversation& conversation, std::string_view rest);
};

CommandOutcome show_help(Conversation& conversation, std::string_view rest);

CommandOutcome quit(Conversation&, std::string_view) { return CommandOutcome::kQuit; }

CommandOutcome clear(Conversation& conversation, std::string_view) {
  conversation.clear();
  write_note("The conversation starts anew.");
  return CommandOutcome::kDone;
}

CommandOutcome set_system(Conversation& conversation, std::string_view rest) {
  if (rest.empty()) {
    write_note(conversation.system().empty() ? "There is no system message." : conversation.system());
    return CommandOutcome::kDone;
  }
  conversation.set_system(rest == "-" ? "" : std::string(rest));
  return CommandOutcome::kDone;
}

constexpr Command kCommands[] = {
    {"/help", "", "show this list", show_help},
    {"/clear", "", "forget the conversation, keep the system message", clear},
    {"/system", "[TEXT]", "set the system message; - removes it; without TEXT: show it", set_system},
    {"/quit", "", "leave (also Ctrl-D)", quit},
    {"/exit", "", "leave", quit},
};

CommandOutcome show_help(Conversation& conversation, std::string_view) {
  for (const auto& command : kCommands)
    write_note(fmt::format("  {:18} {}", fmt::format("{} {}", command.name, command.arguments), command.help));
  write_note(fmt::format("  Ctrl-C stops an answer and keeps it. {} of {} tokens of context used, {} turns.",
                         conversation.context_used(), conversation.context_size(), conversation.turns()));
  return CommandOutcome::kDone;
}

}  // namespace

CommandOutcome run_command(Conversation& conversation, std::string_view line, bool terminal) {
  if (!line.starts_with('/')) return CommandOutcome::kNoCommand;
  const auto end = std::min(line.find_first_of(" \t"), line.size());
  const auto begin = std::min(line.find_first_not_of(" \t", end), line.size());
  std::string_view rest = line.substr(begin);
  while (rest.ends_with(' ') || rest.ends_with('\t')) rest.remove_suffix(1);
  for (const auto& command : kCommands)
    if (command.name == line.substr(0, end) && (rest.empty() || !command.arguments.empty()))
      return command.run(conversation, rest);
  if (!terminal) return CommandOutcome::kNoCommand;
  write_note(fmt::format("There is no command {}; /help lists them.", line.substr(0, end)));
  return CommandOutcome::kDone;
}

}  // namespace hk::cli
