// From an input line to what the scheduler is asked, and to what the answer's writer must know.
//
// Layer: cli/batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/batch/field_template.h"
#include "cli/batch/request_reader.h"
#include "cli/chat/prompt_builder.h"
#include "cli/model_options.h"
#include "engine/generate/request.h"

namespace hk::cli {

/// What holds for requests that do not say otherwise, and how lines become prompts.
struct BatchDefaults {
  engine::SamplerSettings sampling;  ///< `seed` is the one that those of the requests are made from
  std::optional<std::size_t> max_tokens;
  std::vector<std::string> stop;
  bool begin_token = true;
  bool parse_special = false;
  bool show_special = false;
  bool score = false;                                    ///< texts are scored, not continued
  bool chat = false;                                     ///< a prompt is a user's message
  std::string system;                                    ///< with `chat`
  std::optional<FieldTemplate> prompt;                   ///< makes the prompt of the line's fields
  std::optional<FieldTemplate> continuation;             ///< of a text to score
  std::optional<tokenizer::ChatTemplate> chat_template;  ///< instead of the model's own
};

enum class AnswerForm : std::uint8_t { kNative, kChatCompletion, kCompletion };

struct AnswerShape {
  std::uint64_t line = 0;
  std::string id_json;
  AnswerForm form = AnswerForm::kNative;
  bool scored = false;
  bool list = false;          ///< several answers or scores were asked for: a list, even of one
  bool tokens = false;        ///< with token ids
  bool token_scores = false;  ///< with log-probabilities
  bool echo = false;
  std::string echoed;                   ///< the prompt as text
  std::vector<engine::TokenId> prompt;  ///< when the answer tells its tokens
  std::string metadata;                 ///< JSON, "": none
};

struct BatchRequest {
  AnswerShape shape;
  engine::Request request;
};

/// Enough of the shape to write an error.
AnswerShape error_shape(const InputLine& line);

class RequestBuilder {
 public:
  /// `running` must outlive it.
  RequestBuilder(const RunningModel& running, BatchDefaults defaults);

  /// Throws hk::Error with a sentence about the line's content.
  BatchRequest build(const InputLine& line);

 private:
  struct Draft;
  void read_native(const Json& object, Draft& draft) const;
  void read_openai(const Json& object, Draft& draft) const;
  bool read_common(const std::string& field, const Json& value, Draft& draft) const;
  std::vector<engine::TokenId> prompt_ids(const Draft& draft);
  void finish(Draft& draft);
  void add_scored(Draft& draft);
  const PromptBuilder& prompts();

  const RunningModel& running_;
  BatchDefaults defaults_;
  std::unique_ptr<PromptBuilder> prompts_;  // made when a conversation comes
};

}  // namespace hk::cli
