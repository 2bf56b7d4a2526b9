// The chat loop.
#include "cli/chat/repl.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "cli/chat/commands.h"
#include "cli/interrupt.h"
#include "cli/streams.h"
#include "cli/text.h"
#include "engine/container/fingerprint.h"

namespace hk::cli {
namespace {

constexpr double kWarnAt = 0.8;  // of the context
constexpr std::size_t kMeterWidth = 30;

constexpr std::string_view kFullHelp =
    "/compact forgets the oldest turns, /clear all of them; -c makes the context larger, --overflow drop-oldest "
    "forgets turns by itself";

}  // namespace

std::uint64_t memory_identity(const RunningModel& running) {
  // Keys and values of two ISA levels may differ in their last bits.
  const auto options = fmt::format("{} {} {} {}", static_cast<int>(running.sequence.kv),
                                   running.sequence.context_length, running.kernels->level, sizeof(void*));
  return checksum(options, engine::model_fingerprint(*running.reader));
}

Repl::Repl(Conversation& conversation, ReplOptions options, SessionFile* session)
    : conversation_(conversation), options_(std::move(options)), session_(session) {
  if (options_.terminal) quiet_ = std::make_unique<TerminalMode>(TerminalMode::Keys::kSignalsRemain);
  if (session_ == nullptr) return;
  memory_ = std::make_unique<engine::StateFile>(session_->memory_path(), memory_identity(conversation_.running()));
  if (session_->existed()) {
    conversation_.set_state(session_->content().state);
    const auto loaded = conversation_.load_memory(*memory_);
    const std::size_t turns = conversation_.state().branch().turns.size();
    if (turns != 0)
      write_note(fmt::format("session '{}' goes on: {} {}, {} positions remembered", session_->name(), turns,
                             turns == 1 ? "turn" : "turns", loaded.positions));
    if (session_->content().answer_cut)
      write_note("the latest answer was cut when the program ended; /retry asks again");
    if (!loaded.problem.empty()) write_note(loaded.problem);
  }
  conversation_.set_listener(session_);
}

Repl::~Repl() { conversation_.set_listener(nullptr); }

void Repl::with_normal_terminal(const std::function<void()>& work) {
  if (quiet_ != nullptr) quiet_->leave();
  try {
    work();
  } catch (...) {
    if (quiet_ != nullptr) quiet_->enter();
    throw;
  }
  if (quiet_ != nullptr) quiet_->enter();
}

// ---- answers ----

bool Repl::ask(std::string question) {
  std::string text;
  for (const std::string& part : attached_) text += part + "\n\n";
  text += question;
  const bool finished = answer([&](engine::GenerateOptions generate, const AskCallbacks& callbacks) {
    return conversation_.ask(std::move(text), std::move(generate), callbacks);
  });
  attached_.clear();
  return finished;
}

bool Repl::retry() {
  return answer([&](engine::GenerateOptions generate, const AskCallbacks& callbacks) {
    return conversation_.retry(std::move(generate), callbacks);
  });
}

bool Repl::ask_instead(std::string question) {
  return answer([&](engine::GenerateOptions generate, const AskCallbacks& callbacks) {
    return conversation_.ask_instead(std::move(question), std::move(generate), callbacks);
  });
}

bool Repl::answer(const Work& work) {
  const InterruptGuard guard;
  PrefillProgress progress;
  AnswerView view(options_.view);
  auto generate = options_.generate;
  generate.cancelled = [] { return InterruptGuard::interrupted(); };
  generate.on_prefill = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  AskCallbacks callbacks;
  callbacks.on_answer = [&](std::string_view text) {
    progress.clear();
    view.answer(text);
  };
  callbacks.on_reasoning = [&](std::string_view text, std::size_t tokens) {
    progress.clear();
    view.reasoning(text, tokens);
  };
  callbacks.on_dropped = [&](std::size_t turns) {
    write_note(
        fmt::format("[the context is full: the {} oldest {} forgotten]", turns, turns == 1 ? "turn is" : "turns are"));
  };
  engine::GenerateResult result;
  try {
    result = work(std::move(generate), callbacks);
  } catch (const ContextFull& error) {
    throw ContextFull(fmt::format("{}; {}", error.what(), kFullHelp), error.kind());
  }
  progress.clear();
  view.finish();
  tell_ending(result);
  save_memory();
  return result.reason != engine::FinishReason::kCancelled;
}

void Repl::tell_ending(const engine::GenerateResult& result) {
  switch (result.reason) {
    case engine::FinishReason::kContextFull:
      write_note(fmt::format("[the context of {} tokens is full; {}]", conversation_.context_size(), kFullHelp));
      break;
    case engine::FinishReason::kLength:
      write_note("[cut at the limit of --max-tokens]");
      break;
    case engine::FinishReason::kCancelled:
      write_note("[stopped]");
      break;
    default:
      break;
  }
  if (options_.statistics) write_note(conversation_.statistics_line(result));
  if (result.reason == engine::FinishReason::kContextFull && conversation_.options().overflow == Overflow::kError &&
      !options_.terminal)
    throw ContextFull("the answer was cut by the end of the context");
  if (result.reason != engine::FinishReason::kContextFull) warn_of_context();
}

std::string Repl::context_meter() const {
  const std::size_t used = conversation_.context_used(), size = conversation_.context_size();
  const double part = static_cast<double>(used) / static_cast<double>(size);
  const auto filled = std::min(kMeterWidth, static_cast<std::size_t>(part * kMeterWidth + 0.5));
  return fmt::format("context [{}{}] {} of {} tokens ({:.0f} %)", std::string(filled, '#'),
                     std::string(kMeterWidth - filled, '.'), used, size, 100 * part);
}

void Repl::warn_of_context() {
  const auto& latest = conversation_.latest();
  if (!latest) return;
  const auto used = latest->statistics.prompt_tokens + latest->statistics.generated_tokens;
  const bool full = static_cast<double>(used) >= kWarnAt * static_cast<double>(conversation_.context_size());
  if (full && !warned_)
    write_note(
        fmt::format("[{} of {} tokens of the context are used; {}]", used, conversation_.context_size(), kFullHelp));
  warned_ = full;
}

void Repl::save_memory() {
  if (memory_ == nullptr) return;
  try {
    // A cache may not fill the disk.
    std::error_code problem;
    const auto space = std::filesystem::space(std::filesystem::path(session_->memory_path()).parent_path(), problem);
    const std::uint64_t bytes = conversation_.memory_file_bytes(*memory_);
    if (!problem && bytes / 2 > space.available)
      throw Error(
          fmt::format("{}: {} would be more than half of the free space", session_->memory_path(), bytes_text(bytes)));
    conversation_.save_memory(*memory_);
  } catch (const Error& error) {
    write_note(fmt::format("{}; the session will be read again when it goes on", error.what()));
    memory_->remove();
    memory_.reset();
  }
}

// ---- the loop ----

bool Repl::handle_line(std::string line) {
  switch (run_command(*this, line)) {
    case CommandOutcome::kQuit:
      return false;
    case CommandOutcome::kDone:
      return true;
    case CommandOutcome::kStopped:
      interrupts_ = 1;
      break;
    case CommandOutcome::kNoCommand:
      if (!ask(std::move(line))) interrupts_ = 1;
      break;
  }
  if (!options_.terminal && interrupts_ != 0) throw Error("interrupted", ErrorKind::kInterrupted);
  return true;
}

void Repl::run() {
  std::string history;
  if (const auto folder = state_folder(); options_.terminal && !folder.empty()) history = (folder / "history").string();
  const auto reader = options_.terminal ? LineReader::editing(options_.view.colours, history,
                                                              [this](std::string_view text, std::size_t cursor) {
                                                                return complete_command(*this, text.substr(0, cursor));
                                                              })
                                        : LineReader::plain();
  while (true) {
    std::string line;
    const auto event = reader->read(line);
    if (event == LineReader::Event::kEnd) return;
    if (event == LineReader::Event::kInterrupted) {
      interrupts_ = reader->discarded_text() ? 0 : interrupts_ + 1;
      if (interrupts_ > 1) throw Error("interrupted", ErrorKind::kInterrupted);
      if (interrupts_ == 1) write_note("(Ctrl-C once more leaves, as do Ctrl-D and /quit)");
      continue;
    }
    if (line.find_first_not_of(" \t\n") == std::string::npos) continue;
    interrupts_ = 0;
    if (!options_.terminal) {
      if (!handle_line(std::move(line))) return;
      continue;
    }
    try {
      if (!handle_line(std::move(line))) return;
    } catch (const Error& error) {
      // The person is still there and may do something about it; a stream that cannot be written cannot be mended.
      if (error.kind() == ErrorKind::kResource) throw;
      write_note(fmt::format("hk-run: {}", error.what()));
    }
  }
}

}  // namespace hk::cli
