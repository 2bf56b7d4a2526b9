// From a conversation to the token ids that the model was trained to answer: chat template, then tokenizer.
//
// Layer: cli/chat.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/generate/model.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace hk::cli {

struct ThinkFormat;

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant"
  std::string text;
  std::string reasoning = {};  ///< of an answer; whether it becomes part of the prompt is the template's decision
  /// The tokens that were sampled for `text`; empty when they are not known. They are used as they are where the prompt
  /// holds the text between control tokens: the same text may have other tokens, and the model's memory holds these.
  std::span<const engine::TokenId> ids = {};
};

/// A conversation as JSON texts, for messages that hold more than a role and a text.
struct ConversationJson {
  std::string messages;   ///< a list of objects
  std::string tools;      ///< "": none
  std::string documents;  ///< "": none
  std::string variables;  ///< an object of further variables of the template; "": none
  bool add_generation_prompt = true;
  bool parse_special = false;  ///< see PromptOptions
};

struct PromptOptions {
  bool begin_answer = true;
  /// What users write may become control tokens; else it never can, nor can what models wrote.
  bool parse_special = false;
  std::vector<std::pair<std::string, std::string>> variables = {};  ///< further ones of the template: names, JSON texts
};

struct ChatPrompt {
  std::vector<engine::TokenId> ids;
  bool in_reasoning = false;  ///< the template has begun the reasoning of the answer
};

class PromptBuilder {
 public:
  /// The arguments but the template must outlive the builder.
  PromptBuilder(const engine::ModelReader& reader, const tokenizer::Tokenizer& tokenizer,
                tokenizer::ChatTemplate chat_template);
  ~PromptBuilder();

  /// The messages and the beginning of an answer. Throws hk::Error with the template's own words when it refuses the
  /// conversation.
  ChatPrompt build(std::span<const ChatMessage> messages, const PromptOptions& options = {}) const;
  std::vector<engine::TokenId> build(const ConversationJson& conversation) const;

  const tokenizer::ChatTemplate& chat_template() const;
  /// How reasoning is marked; null when the model has none.
  const ThinkFormat* think_format() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hk::cli
