// Commands that read and write files.
#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/chat/chat_json.h"
#include "cli/chat/command_list.h"
#include "cli/output_check.h"
#include "cli/streams.h"
#include "cli/text.h"
#include "engine/container/atomic_file.h"

namespace hk::cli {
namespace {

namespace fs = std::filesystem;

/// The file's text; it becomes part of prompts, which are UTF-8.
std::string text_of(const std::string& path) {
  std::error_code problem;
  if (fs::is_directory(path, problem)) throw Error(fmt::format("{}: is a folder; expected a file", path));
  std::string text = read_text(path);
  if (const auto at = find_invalid_utf8(text); at != text.size())
    throw Error(fmt::format("{}: not UTF-8 text at byte {}", path, at));
  return text;
}

std::string needed_file(std::string_view command, std::string_view rest) {
  if (rest.empty()) throw Error(fmt::format("{}: the name of a file is missing", command));
  return std::string(rest);
}

std::string markdown_text(const ChatBranch& branch) {
  std::string out;
  const auto section = [&](std::string_view title, std::string_view text) {
    if (!out.empty()) out += "\n";
    out += fmt::format("## {}\n\n{}\n", title, text);
  };
  if (!branch.system.empty()) section("System", branch.system);
  for (const ChatTurn& turn : branch.turns) {
    section("User", turn.question);
    section("Assistant", turn.answer);
  }
  return out;
}

}  // namespace

CommandOutcome read_file(Repl& repl, std::string_view rest) {
  const std::string path = needed_file("/read", rest);
  std::string text = text_of(path);
  while (text.ends_with('\n')) text.pop_back();
  if (repl.options().terminal)
    write_note(fmt::format("{}: {}, {} tokens; goes before your next message", path, bytes_text(text.size()),
                           repl.conversation().count_tokens(text)));
  repl.attach(std::move(text));
  return CommandOutcome::kDone;
}

CommandOutcome save_chat(Repl& repl, std::string_view rest) {
  const bool replaces = rest == "-f" || rest.starts_with("-f ");
  if (replaces) {
    rest.remove_prefix(2);
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  }
  const std::string path = needed_file("/save", rest);
  std::error_code problem;
  if (!replaces && fs::exists(path, problem))
    throw Error(fmt::format("{}: exists already; /save -f {} replaces it", path, path));
  refuse_inputs(path, *repl.conversation().running().reader);
  const auto& branch = repl.conversation().state().branch();
  const std::string text = path.ends_with(".md") ? markdown_text(branch) : messages_text(branch);
  try {
    engine::AtomicFile out(path);
    out.write(0, std::as_bytes(std::span(text)));
    out.sync();
    out.commit();
  } catch (const Error& error) {
    // A disk that is full for this file is no reason to end the chat.
    throw Error(error.what());
  }
  write_note(fmt::format("{} turns written to {}", branch.turns.size(), path));
  return CommandOutcome::kDone;
}

CommandOutcome load_chat(Repl& repl, std::string_view rest) {
  const std::string path = needed_file("/load", rest);
  ChatBranch loaded;
  try {
    loaded = branch_from_messages(text_of(path));
  } catch (const Error& error) {
    const std::string what = error.what();
    throw Error(what.starts_with(path) ? what : fmt::format("{}: {}", path, what));
  }
  ChatState state = repl.conversation().state();
  loaded.name = state.branch().name;
  const std::size_t turns = loaded.turns.size();
  state.branch() = std::move(loaded);
  repl.conversation().set_state(std::move(state));
  write_note(fmt::format("{} turns read from {}", turns, path));
  return CommandOutcome::kDone;
}

}  // namespace hk::cli
