// Commands that change what was said.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/error.h"
#include "cli/chat/command_list.h"
#include "cli/chat/text_editor.h"
#include "cli/streams.h"
#include "cli/text.h"

namespace hk::cli {
namespace {

constexpr std::size_t kExcerpt = 60;  // characters of a question that a note repeats

std::string excerpt(std::string_view text) {
  std::string line = printable(text.substr(0, text.find('\n')));
  if (line.size() <= kExcerpt) return line;
  std::size_t end = kExcerpt;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;
  return line.substr(0, end) + "...";
}

bool has_turn(Repl& repl) {
  if (!repl.conversation().state().branch().turns.empty()) return true;
  write_note("Nothing was asked yet.");
  return false;
}

CommandOutcome outcome(bool finished) { return finished ? CommandOutcome::kDone : CommandOutcome::kStopped; }

const char* turns_text(std::size_t count) { return count == 1 ? "turn" : "turns"; }

void list_branches(const ChatState& state) {
  for (std::size_t i = 0; i < state.branches.size(); ++i) {
    const auto& branch = state.branches[i];
    write_note(fmt::format("{} {:20} {} {}{}", i == state.current ? '*' : ' ', branch.name, branch.turns.size(),
                           turns_text(branch.turns.size()),
                           branch.turns.empty() ? "" : ", latest: " + excerpt(branch.turns.back().question)));
  }
}

}  // namespace

CommandOutcome clear_turns(Repl& repl, std::string_view) {
  repl.conversation().clear();
  repl.drop_attached();
  write_note("The conversation starts anew.");
  return CommandOutcome::kDone;
}

CommandOutcome undo_turn(Repl& repl, std::string_view) {
  if (!has_turn(repl)) return CommandOutcome::kDone;
  const std::string question = repl.conversation().state().branch().turns.back().question;
  repl.conversation().undo();
  write_note(fmt::format("Forgotten: {}", excerpt(question)));
  return CommandOutcome::kDone;
}

CommandOutcome retry_turn(Repl& repl, std::string_view) {
  return has_turn(repl) ? outcome(repl.retry()) : CommandOutcome::kDone;
}

CommandOutcome edit_turn(Repl& repl, std::string_view) {
  const auto& turns = repl.conversation().state().branch().turns;
  const bool first = turns.empty();
  const std::string before = first ? "" : turns.back().question;
  std::optional<std::string> edited;
  repl.with_normal_terminal([&] { edited = edit_in_editor(before); });
  if (!edited) {
    write_note("The editor ended with a failure; nothing changes.");
  } else if (edited->find_first_not_of(" \t\n") == std::string::npos) {
    write_note("The text is empty; nothing changes.");
  } else {
    return outcome(first ? repl.ask(*edited) : repl.ask_instead(*edited));
  }
  return CommandOutcome::kDone;
}

CommandOutcome branch_turns(Repl& repl, std::string_view rest) {
  Conversation& chat = repl.conversation();
  const ChatState& state = chat.state();
  const bool removes = rest == "-d" || rest.starts_with("-d ");
  if (removes) {
    rest.remove_prefix(2);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  const std::string name(rest);
  if (name.find_first_of(" \t\n") != std::string::npos)
    throw Error(fmt::format("/branch: '{}' is no name for a branch; expected one word", printable(name)));
  const std::size_t index = state.find(name);
  const bool exists = index < state.branches.size();
  if (removes) {
    if (!exists) throw Error(fmt::format("/branch -d: there is no branch '{}'", printable(name)));
    if (index == state.current)
      throw Error(fmt::format("/branch -d: '{}' is the present branch; /branch NAME leaves it", printable(name)));
    chat.remove_branch(index);
    write_note(fmt::format("The branch '{}' is removed.", printable(name)));
  } else if (name.empty()) {
    list_branches(state);
  } else if (exists) {
    chat.switch_branch(index);
    const auto& turns = state.branch().turns;
    write_note(fmt::format("Back in the branch '{}' ({} {}{}).", printable(name), turns.size(),
                           turns_text(turns.size()),
                           turns.empty() ? "" : ", latest: " + excerpt(turns.back().question)));
  } else {
    const std::string from = state.branch().name;
    chat.add_branch(name);
    write_note(
        fmt::format("The new branch '{}' goes on from here; /branch {} leads back.", printable(name), printable(from)));
  }
  return CommandOutcome::kDone;
}

CommandOutcome compact_turns(Repl& repl, std::string_view rest) {
  Conversation& chat = repl.conversation();
  std::size_t dropped = 0;
  if (rest.empty()) {
    dropped = chat.compact();
  } else {
    std::size_t keep = 0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), keep);
    if (problem != std::errc{} || end != rest.data() + rest.size())
      throw Error(fmt::format("/compact: '{}' is no number of turns", printable(rest)));
    dropped = chat.keep_latest(keep);
  }
  write_note(fmt::format("{} of the oldest turns forgotten; {}", dropped, repl.context_meter()));
  return CommandOutcome::kDone;
}

CommandOutcome set_system(Repl& repl, std::string_view rest) {
  Conversation& chat = repl.conversation();
  if (rest.empty()) {
    const std::string& text = chat.state().branch().system;
    write_note(text.empty() ? "There is no system message." : printable(text));
    return CommandOutcome::kDone;
  }
  chat.set_system(rest == "-" ? "" : std::string(rest));
  return CommandOutcome::kDone;
}

}  // namespace hk::cli
