// The chat loop.
#include "cli/chat/repl.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cli/chat/commands.h"
#include "cli/chat/line_reader.h"
#include "cli/chat/screen.h"
#include "cli/interrupt.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

/// What the person should know about how an answer ended, "" when it simply ended.
std::string ending(const engine::GenerateResult& result, const Conversation& conversation) {
  switch (result.reason) {
    case engine::FinishReason::kContextFull:
      return fmt::format("[the context of {} tokens is full; /clear starts anew, --context makes it larger]",
                         conversation.context_size());
    case engine::FinishReason::kLength:
      return "[cut at the limit of --max-tokens]";
    case engine::FinishReason::kCancelled:
      return "[stopped]";
    default:
      return "";
  }
}

}  // namespace

bool answer(Conversation& conversation, std::string question, const ReplOptions& options) {
  const InterruptGuard guard;
  PrefillProgress progress;
  const bool filter = stdout_is_terminal();
  auto generate = options.generate;
  generate.cancelled = [] { return InterruptGuard::interrupted(); };
  generate.on_prefill = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  generate.on_text = [&](std::string_view text) {
    progress.clear();
    write_answer(filter ? terminal_safe(text) : text);
  };
  const auto result = conversation.ask(std::move(question), generate);
  progress.clear();
  if (!result.text.ends_with('\n')) write_answer("\n");
  if (const auto note = ending(result, conversation); !note.empty()) write_note(note);
  if (options.statistics) write_note(conversation.statistics_line(result));
  return result.reason != engine::FinishReason::kCancelled;
}

void run_repl(Conversation& conversation, const ReplOptions& options) {
  const auto reader = LineReader::create(options.terminal, "> ");
  std::string line;
  while (true) {
    const auto event = reader->read(line);
    if (event == LineReader::Event::kEnd) return;
    if (event == LineReader::Event::kInterrupted) {
      write_note("(/quit or Ctrl-D leaves)");
      continue;
    }
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    switch (run_command(conversation, line, options.terminal)) {
      case CommandOutcome::kQuit:
        return;
      case CommandOutcome::kDone:
        continue;
      case CommandOutcome::kNoCommand:
        break;
    }
    if (!options.terminal) {
      if (!answer(conversation, line, options)) throw Error("interrupted", ErrorKind::kInterrupted);
      continue;
    }
    try {
      answer(conversation, line, options);
    } catch (const Error& error) {
      // The person is still there and may do something about it; a stream that cannot be written cannot be mended.
      if (error.kind() == ErrorKind::kResource) throw;
      write_note(fmt::format("hk-run: {}", error.what()));
    }
  }
}

}  // namespace hk::cli
