// One chat: its turns, the model's memory of them, and the next answer.
//
// Layer: cli/chat. Knows no terminal: text goes out through callbacks. The model's memory follows the turns by itself:
// what a new prompt shares with the text before is never read again, so taking back, asking again and branching cost
// only what differs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/chat/chat_state.h"
#include "cli/chat/prompt_builder.h"
#include "cli/chat/thinking.h"
#include "cli/model_options.h"
#include "engine/generate/generator.h"
#include "engine/generate/state_file.h"

namespace hk::cli {

/// What happens when a question no longer fits.
enum class Overflow : std::uint8_t {
  kStop,        ///< it is refused, the conversation stays
  kDropOldest,  ///< the oldest turns are forgotten
  kError,       ///< it is refused, and so is an answer that the end of the context cut
};

struct ConversationOptions {
  engine::SamplerSettings sampling;
  Overflow overflow = Overflow::kStop;
  bool parse_special = false;
  std::optional<bool> think;                                   ///< absent: as the template does by itself
  std::optional<std::size_t> think_budget;                     ///< tokens of reasoning at most
  std::vector<std::pair<std::string, std::string>> variables;  ///< of the template: names and JSON texts
};

/// A question that does not fit the context. Nothing has changed.
class ContextFull : public Error {
 public:
  using Error::Error;
};

struct AskCallbacks {
  std::function<void(std::string_view text)> on_answer;
  /// `tokens`: of reasoning, so far.
  std::function<void(std::string_view text, std::size_t tokens)> on_reasoning;
  std::function<void(std::size_t turns)> on_dropped;  ///< oldest turns were forgotten
};

struct ChatTotals {
  std::size_t answers = 0, read = 0, cached = 0, generated = 0;
  double read_seconds = 0, generate_seconds = 0;
};

class Conversation {
 public:
  /// `running` must outlive it.
  Conversation(const RunningModel& running, tokenizer::ChatTemplate chat_template, ConversationOptions options);
  ~Conversation();

  const ChatState& state() const { return state_; }
  const ConversationOptions& options() const { return options_; }
  const engine::Sampler& sampler() const { return sampler_; }
  const RunningModel& running() const { return running_; }
  const ChatTotals& totals() const { return totals_; }
  const std::optional<engine::GenerateResult>& latest() const { return latest_; }
  /// May be null. Must outlive the conversation, or be taken away.
  void set_listener(ChatListener* listener) { listener_ = listener; }

  /// Asks and streams the answer. The turn is kept, also when it was cut short; when nothing was answered (cancelled
  /// before the first word, or an error) it is forgotten again. `generate` gives limits, stop strings and how to
  /// cancel. Throws ContextFull, and what the model and the template throw.
  engine::GenerateResult ask(std::string question, engine::GenerateOptions generate, const AskCallbacks& callbacks);
  /// Answers the latest question once more; the old answer stays when there is no new one. There must be a turn.
  engine::GenerateResult retry(engine::GenerateOptions generate, const AskCallbacks& callbacks);
  /// Replaces the latest question; as `retry`.
  engine::GenerateResult ask_instead(std::string question, engine::GenerateOptions generate,
                                     const AskCallbacks& callbacks);

  /// Replaces the system message; empty: none. The turns stay and are read again with it.
  void set_system(std::string text);
  /// Forgets all turns; the system message stays.
  void clear();
  /// Forgets the latest turn. False when there is none.
  bool undo();
  /// Forgets the oldest turns until at most `keep` are left. Returns how many were forgotten.
  std::size_t keep_latest(std::size_t keep);
  /// Forgets the oldest turns until the rest takes at most half of the context; the latest stays.
  std::size_t compact();
  /// Replaces everything, as with what a file held.
  void set_state(ChatState state);

  /// A branch like the current one, which becomes the current one. `name` must be new.
  void add_branch(std::string name);
  void switch_branch(std::size_t index);
  /// Forgets a branch; not the current one.
  void remove_branch(std::size_t index);

  /// The random numbers begin anew, with the present seed unless `settings` names one. Throws hk::Error.
  void set_sampling(engine::SamplerSettings settings);
  void set_overflow(Overflow overflow) { options_.overflow = overflow; }
  void set_think(std::optional<bool> think) { options_.think = think; }
  void set_think_budget(std::optional<std::size_t> tokens) { options_.think_budget = tokens; }

  /// Tokens of all turns as the next prompt begins with them.
  std::size_t context_used() const;
  std::size_t context_size() const { return running_.sequence.context_length; }
  /// The model or its template is known to reason.
  bool knows_thinking() const { return think_ != nullptr; }
  /// The template has a switch for it.
  bool can_switch_thinking() const { return !switches_.empty(); }
  std::size_t count_tokens(std::string_view text) const;
  std::string statistics_line(const engine::GenerateResult& result) const {
    return running_.statistics_line(result, sampler_);
  }

  /// The memory of the current branch to and from a file. See StateFile.
  engine::StateFile::Loaded load_memory(engine::StateFile& file) { return file.load(session()); }
  std::uint64_t memory_file_bytes(const engine::StateFile& file) { return file.size_after_save(session()); }
  void save_memory(engine::StateFile& file) { file.save(session()); }

 private:
  class Reply;

  engine::Session& session();
  /// Without the turns before `from_turn`; so for the two below.
  std::vector<ChatMessage> messages(std::size_t from_turn) const;
  PromptOptions prompt_options(bool begin_answer) const;
  ChatPrompt prompt_for(const std::string& question, std::size_t from_turn) const;
  std::size_t tokens_from(std::size_t turn) const;
  /// The prompt, after forgetting turns where that is wanted. Throws ContextFull.
  ChatPrompt fitting_prompt(const std::string& question, const engine::GenerateOptions& generate,
                            const AskCallbacks& callbacks);
  void changed();

  const RunningModel& running_;
  PromptBuilder prompts_;
  const ThinkFormat* think_;
  std::vector<std::string_view> switches_;
  ConversationOptions options_;
  engine::Sampler sampler_;
  ChatState state_;
  std::vector<std::unique_ptr<engine::Session>> sessions_;  // one a branch; null: made when it is needed
  ChatListener* listener_ = nullptr;
  ChatTotals totals_;
  std::optional<engine::GenerateResult> latest_;
};

}  // namespace hk::cli
