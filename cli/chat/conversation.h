// One chat: the messages so far, the model's memory of them, and the next answer.
//
// Layer: cli/chat. Knows no terminal: text goes out through callbacks.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat/prompt_builder.h"
#include "cli/model_options.h"
#include "engine/generate/generator.h"

namespace hk::cli {

class Conversation {
 public:
  /// `running` must outlive it.
  Conversation(const RunningModel& running, const engine::SamplerSettings& settings,
               const std::optional<std::string>& template_text);

  /// Replaces the system message; empty: none. The history stays and is read again with it.
  void set_system(std::string text);
  /// Forgets all turns; the system message stays.
  void clear();

  /// Asks and streams the answer through options.on_text. The turn is kept, also when it was cut short; when nothing
  /// was answered (cancelled before the first word, or an error) it is forgotten again. Only what changed since the
  /// last turn is read.
  engine::GenerateResult ask(std::string text, engine::GenerateOptions options);

  const std::string& system() const { return system_; }
  std::size_t turns() const { return turns_.size() / 2; }
  std::size_t context_used() const { return session_.history().size(); }
  std::size_t context_size() const { return session_.capacity(); }
  std::string statistics_line(const engine::GenerateResult& result) const {
    return running_.statistics_line(result, sampler_);
  }

 private:
  const RunningModel& running_;
  PromptBuilder prompts_;
  engine::Sampler sampler_;
  engine::Session session_;
  std::string system_;
  std::vector<ChatMessage> turns_;  // user, assistant, user, ...
};

}  // namespace hk::cli
