// Turns of a chat.
#include "cli/chat/conversation.h"

#include <utility>

namespace hk::cli {

Conversation::Conversation(const RunningModel& running, const engine::SamplerSettings& settings,
                           const std::optional<std::string>& template_text)
    : running_(running),
      prompts_(*running.reader, *running.tokenizer, template_text),
      sampler_(running.make_sampler(settings)),
      session_(*running.model, running.sequence) {}

void Conversation::set_system(std::string text) { system_ = std::move(text); }

void Conversation::clear() { turns_.clear(); }

engine::GenerateResult Conversation::ask(std::string text, engine::GenerateOptions options) {
  std::vector<ChatMessage> messages;
  if (!system_.empty()) messages.push_back({"system", system_});
  messages.insert(messages.end(), turns_.begin(), turns_.end());
  messages.push_back({"user", std::move(text)});
  const auto prompt = prompts_.build(messages);
  options.fresh_text = true;
  auto result = engine::generate(session_, *running_.tokenizer, sampler_, prompt, options);
  if (result.reason == engine::FinishReason::kCancelled && result.text.empty()) return result;
  turns_.push_back(std::move(messages.back()));
  turns_.push_back({"assistant", result.text});
  return result;
}

}  // namespace hk::cli
