// From a conversation to the token ids that the model was trained to answer: chat template, then tokenizer.
//
// Layer: cli/chat.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/generate/model.h"
#include "tokenizer/tokenizer.h"

namespace hk::cli {

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string text;
};

/// A conversation as JSON texts, for messages that hold more than a role and a text.
struct ConversationJson {
  std::string messages;   ///< a list of objects
  std::string tools;      ///< "": none
  std::string documents;  ///< "": none
  std::string variables;  ///< an object of further variables of the template; "": none
  bool add_generation_prompt = true;
};

class PromptBuilder {
 public:
  /// The file's template (tokenizer.chat_template), or `template_text` when given. Throws hk::Error when there is none
  /// or it cannot be read. Both arguments must outlive the builder.
  PromptBuilder(const engine::ModelReader& reader, const tokenizer::Tokenizer& tokenizer,
                const std::optional<std::string>& template_text);
  ~PromptBuilder();

  /// The messages and the beginning of an answer. What users and models wrote can never become control tokens. Throws
  /// hk::Error with the template's own words when it refuses the conversation.
  std::vector<engine::TokenId> build(std::span<const ChatMessage> messages) const;
  std::vector<engine::TokenId> build(const ConversationJson& conversation) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hk::cli
