// Turns, branches and the context (see conversation.h).
#include "cli/chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ranges>

#include "base/error.h"

namespace hk::cli {
namespace {

/// The answer was cancelled before its first word: no turn comes of it.
bool came_to_nothing(const engine::GenerateResult& result) {
  return result.reason == engine::FinishReason::kCancelled && result.text.empty();
}

/// The fewest oldest turns whose loss makes the rest fit, from `least` to `most`; `most` when nothing less helps. What
/// is left only shrinks, so a long conversation needs few looks (each renders and encodes all of it).
template <typename Fits>
std::size_t turns_to_drop(std::size_t least, std::size_t most, Fits fits) {
  const auto choices = std::views::iota(least, most);
  return least + static_cast<std::size_t>(std::ranges::partition_point(choices, std::not_fn(fits)) - choices.begin());
}

}  // namespace

/// An answer on its way: taken apart into reasoning and text, and its reasoning ended when it has become too long.
class Conversation::Reply {
 public:
  Reply(Conversation& chat, const ChatPrompt& prompt, const AskCallbacks& callbacks)
      : chat_(chat), callbacks_(callbacks), splitter_(chat.think_, prompt.in_reasoning) {}

  void add_to(engine::GenerateOptions& generate) {
    generate.fresh_text = true;
    if (chat_.think_ != nullptr) generate.shown_tokens = think_tokens(*chat_.think_, *chat_.running_.tokenizer);
    generate.on_text = [this](std::string_view text) { take(splitter_.push(text)); };
    generate.on_token = [this](engine::TokenId) { return count_token(); };
  }
  void finish() { take(splitter_.finish()); }
  ChatTurn& turn() { return turn_; }

 private:
  void take(const std::vector<ThinkSplitter::Piece>& pieces) {
    for (const auto& piece : pieces) {
      (piece.reasoning ? turn_.reasoning : turn_.answer) += piece.text;
      if (chat_.listener_ != nullptr) chat_.listener_->text_came(piece.text, piece.reasoning);
      if (piece.reasoning) {
        if (callbacks_.on_reasoning) callbacks_.on_reasoning(piece.text, tokens_);
      } else if (callbacks_.on_answer) {
        callbacks_.on_answer(piece.text);
      }
    }
  }

  std::vector<engine::TokenId> count_token() {
    if (!splitter_.reasoning()) return {};
    ++tokens_;
    const auto& budget = chat_.options_.think_budget;
    if (!budget || tokens_ < *budget || closed_) return {};
    closed_ = true;
    return chat_.running_.tokenizer->encode(fmt::format("\n{}\n\n", chat_.think_->close),
                                            {.add_special = false, .parse_special = true});
  }

  Conversation& chat_;
  const AskCallbacks& callbacks_;
  ThinkSplitter splitter_;
  ChatTurn turn_;
  std::size_t tokens_ = 0;  // of reasoning
  bool closed_ = false;
};

Conversation::Conversation(const RunningModel& running, tokenizer::ChatTemplate chat_template,
                           ConversationOptions options)
    : running_(running),
      prompts_(*running.reader, *running.tokenizer, std::move(chat_template)),
      think_(prompts_.think_format()),
      switches_(think_switches(prompts_.chat_template())),
      options_(std::move(options)),
      sampler_(running.make_sampler(options_.sampling)),
      sessions_(1) {
  options_.sampling.seed = sampler_.seed();
}
Conversation::~Conversation() = default;

engine::Session& Conversation::session() {
  auto& session = sessions_[state_.current];
  if (session == nullptr) session = std::make_unique<engine::Session>(*running_.model, running_.sequence);
  return *session;
}

void Conversation::changed() {
  if (listener_ != nullptr) listener_->state_changed(state_);
}

// ---- prompts ----

std::vector<ChatMessage> Conversation::messages(std::size_t from_turn) const {
  const ChatBranch& branch = state_.branch();
  std::vector<ChatMessage> messages;
  if (!branch.system.empty()) messages.push_back({"system", branch.system});
  for (const ChatTurn& turn : std::span(branch.turns).subspan(from_turn)) {
    messages.push_back({"user", turn.question});
    messages.push_back({"assistant", turn.answer, turn.reasoning, turn.ids});
  }
  return messages;
}

PromptOptions Conversation::prompt_options(bool begin_answer) const {
  PromptOptions options;
  options.begin_answer = begin_answer;
  options.parse_special = options_.parse_special;
  if (options_.think)
    for (const auto name : switches_) options.variables.emplace_back(name, *options_.think ? "true" : "false");
  options.variables.insert(options.variables.end(), options_.variables.begin(), options_.variables.end());
  return options;
}

ChatPrompt Conversation::prompt_for(const std::string& question, std::size_t from_turn) const {
  auto list = messages(from_turn);
  list.push_back({"user", question});
  return prompts_.build(list, prompt_options(true));
}

ChatPrompt Conversation::fitting_prompt(const std::string& question, const engine::GenerateOptions& generate,
                                        const AskCallbacks& callbacks) {
  ChatPrompt prompt = prompt_for(question, 0);
  const std::size_t size = context_size();
  if (options_.overflow == Overflow::kDropOldest) {
    // Room for an answer, as long as it may become but no more than a quarter of the context.
    const std::size_t room = std::max<std::size_t>(1, std::min(generate.max_tokens.value_or(size), size / 4));
    const std::size_t turns = state_.branch().turns.size();
    if (prompt.ids.size() + room > size && turns != 0) {
      const std::size_t dropped = turns_to_drop(
          1, turns, [&](std::size_t count) { return prompt_for(question, count).ids.size() + room <= size; });
      keep_latest(turns - dropped);
      prompt = prompt_for(question, 0);
      if (callbacks.on_dropped) callbacks.on_dropped(dropped);
    }
  }
  if (prompt.ids.size() <= size) return prompt;
  throw ContextFull(fmt::format("the context holds {} tokens, but the conversation with this message has {}", size,
                                prompt.ids.size()));
}

std::size_t Conversation::context_used() const { return tokens_from(0); }

std::size_t Conversation::tokens_from(std::size_t turn) const {
  // Many templates refuse a conversation without a user's message.
  if (turn == state_.branch().turns.size())
    return state_.branch().system.empty() ? 0 : count_tokens(state_.branch().system);
  return prompts_.build(messages(turn), prompt_options(false)).ids.size();
}

std::size_t Conversation::count_tokens(std::string_view text) const {
  return running_.tokenizer->encode(text, {.add_special = false, .parse_special = options_.parse_special}).size();
}

// ---- asking ----

engine::GenerateResult Conversation::ask(std::string question, engine::GenerateOptions generate,
                                         const AskCallbacks& callbacks) {
  const ChatPrompt prompt = fitting_prompt(question, generate, callbacks);
  if (listener_ != nullptr) listener_->question_asked(question);
  Reply reply(*this, prompt, callbacks);
  reply.add_to(generate);
  engine::GenerateResult result;
  try {
    result = engine::generate(session(), *running_.tokenizer, sampler_, prompt.ids, generate);
    reply.finish();
  } catch (...) {
    changed();
    throw;
  }
  totals_.answers += 1;
  totals_.read += result.statistics.prefilled_tokens;
  totals_.cached += result.statistics.cached_tokens;
  totals_.generated += result.statistics.generated_tokens;
  totals_.read_seconds += result.statistics.prefill_seconds;
  totals_.generate_seconds += result.statistics.decode_seconds;
  latest_ = result;
  if (came_to_nothing(result)) {
    changed();
    return result;
  }
  ChatTurn turn = std::move(reply.turn());
  turn.question = std::move(question);
  turn.ending = engine::finish_reason_name(result.reason);
  // With reasoning the tokens of the answer alone are not known apart.
  if (turn.reasoning.empty() && turn.answer == result.text) turn.ids = result.tokens;
  state_.branch().turns.push_back(std::move(turn));
  if (listener_ != nullptr) listener_->turn_ended(state_);
  return result;
}

engine::GenerateResult Conversation::ask_instead(std::string question, engine::GenerateOptions generate,
                                                 const AskCallbacks& callbacks) {
  auto& turns = state_.branch().turns;
  const ChatTurn old = std::move(turns.back());
  turns.pop_back();
  const auto restore = [&] {
    turns.push_back(old);
    changed();
  };
  const std::size_t before = turns.size();
  try {
    auto result = ask(std::move(question), std::move(generate), callbacks);
    if (came_to_nothing(result)) {
      restore();
    } else if (listener_ != nullptr && before + 1 == turns.size()) {
      listener_->state_changed(state_);  // the old turn is gone for good
    }
    return result;
  } catch (...) {
    restore();
    throw;
  }
}

engine::GenerateResult Conversation::retry(engine::GenerateOptions generate, const AskCallbacks& callbacks) {
  return ask_instead(state_.branch().turns.back().question, std::move(generate), callbacks);
}

// ---- changing what was said ----

void Conversation::set_system(std::string text) {
  state_.branch().system = std::move(text);
  changed();
}

void Conversation::clear() {
  state_.branch().turns.clear();
  changed();
}

bool Conversation::undo() {
  auto& turns = state_.branch().turns;
  if (turns.empty()) return false;
  turns.pop_back();
  changed();
  return true;
}

std::size_t Conversation::keep_latest(std::size_t keep) {
  auto& turns = state_.branch().turns;
  if (turns.size() <= keep) return 0;
  const std::size_t dropped = turns.size() - keep;
  turns.erase(turns.begin(), turns.begin() + static_cast<std::ptrdiff_t>(dropped));
  changed();
  return dropped;
}

std::size_t Conversation::compact() {
  const std::size_t turns = state_.branch().turns.size();
  if (turns < 2) return 0;
  const std::size_t dropped =
      turns_to_drop(0, turns - 1, [&](std::size_t count) { return tokens_from(count) <= context_size() / 2; });
  return keep_latest(turns - dropped);
}

void Conversation::set_state(ChatState state) {
  state_ = std::move(state);
  sessions_.clear();
  sessions_.resize(state_.branches.size());
  changed();
}

void Conversation::add_branch(std::string name) {
  ChatBranch branch = state_.branch();
  branch.name = std::move(name);
  auto memory = sessions_[state_.current] == nullptr ? nullptr : sessions_[state_.current]->fork();
  state_.branches.push_back(std::move(branch));
  sessions_.push_back(std::move(memory));
  switch_branch(state_.branches.size() - 1);
}

void Conversation::switch_branch(std::size_t index) {
  state_.current = index;
  changed();
}

void Conversation::remove_branch(std::size_t index) {
  state_.branches.erase(state_.branches.begin() + static_cast<std::ptrdiff_t>(index));
  sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(index));
  if (state_.current > index) --state_.current;
  changed();
}

void Conversation::set_sampling(engine::SamplerSettings settings) {
  settings.validate();
  engine::Sampler sampler = running_.make_sampler(settings);
  settings.seed = sampler.seed();
  sampler_ = std::move(sampler);
  options_.sampling = std::move(settings);
}

}  // namespace hk::cli
