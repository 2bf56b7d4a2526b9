// Slash commands: a table of names, help and what they do; and their completion.
#include "cli/chat/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "cli/chat/command_list.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view help;
  CommandFunction* run;
};

CommandFunction show_help;
CommandOutcome quit(Repl&, std::string_view) { return CommandOutcome::kQuit; }

constexpr Command kCommands[] = {
    {"/help", "", "show this list", show_help},
    {"/undo", "", "forget the latest question and its answer", undo_turn},
    {"/retry", "", "answer the latest question once more", retry_turn},
    {"/edit", "", "change the latest question in $EDITOR and ask it instead", edit_turn},
    {"/branch", "[[-d] NAME]",
     "go on in a copy NAME of the conversation, or back to it; -d removes one; alone: list them", branch_turns},
    {"/clear", "", "forget the conversation, keep the system message", clear_turns},
    {"/compact", "[TURNS]", "forget the oldest turns: keep half of the context, or so many turns", compact_turns},
    {"/system", "[TEXT]", "set the system message; - removes it; alone: show it", set_system},
    {"/set", "NAME VALUE", "change a setting, such as temperature 0.5", set_setting},
    {"/show", "", "show model, settings and where they come from", show_settings},
    {"/think", "[on|off|collapse|hide]", "let the model think or not, and how it is shown", think_mode},
    {"/read", "FILE", "put a file's text before the next message", read_file},
    {"/save", "[-f] FILE", "write the conversation to a .json or .md file; -f replaces one", save_chat},
    {"/load", "FILE", "go on with a conversation out of a .json file", load_chat},
    {"/context", "", "show how full the context is", show_context},
    {"/stats", "", "show tokens and speeds of the latest answer and of all", show_statistics},
    {"/quit", "", "leave (also Ctrl-D)", quit},
    {"/exit", "", "leave", quit},
};

CommandOutcome show_help(Repl&, std::string_view) {
  for (const auto& command : kCommands)
    write_note(fmt::format("  {:32} {}", fmt::format("{} {}", command.name, command.arguments), command.help));
  write_note(
      "  Alt-Enter, or a backslash at the end of a line, begins a new line; pasted lines are one message. Ctrl-C stops "
      "an answer and keeps it.");
  return CommandOutcome::kDone;
}

/// "/name": a letter follows, unlike in "/usr/bin" or "//".
bool looks_like_command(std::string_view word) {
  return word.size() > 1 && std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

std::vector<std::string> file_names(std::string_view typed) {
  namespace fs = std::filesystem;
  const auto slash = typed.rfind('/');
  const std::string folder(slash == std::string_view::npos ? "" : typed.substr(0, slash + 1));
  std::vector<std::string> names;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, problem)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    names.push_back(folder + name + (entry.is_directory(problem) ? "/" : ""));
  }
  return names;
}

}  // namespace

CommandOutcome run_command(Repl& repl, std::string_view line) {
  if (!line.starts_with('/')) return CommandOutcome::kNoCommand;
  const auto end = std::min(line.find_first_of(" \t\n"), line.size());
  const auto begin = std::min(line.find_first_not_of(" \t\n", end), line.size());
  const std::string_view name = line.substr(0, end);
  std::string_view rest = line.substr(begin);
  while (!rest.empty() && (rest.back() == ' ' || rest.back() == '\t')) rest.remove_suffix(1);
  for (const auto& command : kCommands) {
    if (command.name != name) continue;
    if (rest.empty() || !command.arguments.empty()) return command.run(repl, rest);
    break;
  }
  if (!repl.options().terminal || !looks_like_command(name)) return CommandOutcome::kNoCommand;
  write_note(
      fmt::format("There is no command {}{}; /help lists them.", name, rest.empty() ? "" : " with words after it"));
  return CommandOutcome::kDone;
}

Completion complete_command(Repl& repl, std::string_view text) {
  Completion completion;
  if (!text.starts_with('/')) return completion;
  const auto blank = text.find(' ');
  std::vector<std::string> words;
  if (blank == std::string_view::npos) {
    for (const auto& command : kCommands) words.emplace_back(command.name);
  } else {
    completion.begin = text.rfind(' ') + 1;
    const std::string_view name = text.substr(0, blank);
    if (name == "/read" || name == "/load" || name == "/save") {
      words = file_names(text.substr(completion.begin));
    } else if (name == "/think") {
      words = {"on", "off", "collapse", "hide"};
    } else if (name == "/branch") {
      for (const auto& branch : repl.conversation().state().branches) words.push_back(branch.name);
    } else if (name == "/set" && completion.begin == blank + 1) {
      for (const auto setting : setting_names()) words.emplace_back(setting);
    }
  }
  const std::string_view typed = text.substr(completion.begin);
  std::erase_if(words, [&](const std::string& word) { return !word.starts_with(typed); });
  std::sort(words.begin(), words.end());
  completion.words = std::move(words);
  return completion;
}

}  // namespace hk::cli
