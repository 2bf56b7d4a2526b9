// Fields of a request and what they mean (see request_builder.h). docs/batch.md is the reference for users.
#include "cli/batch/request_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "cli/batch/conversation_json.h"
#include "cli/sampling_fields.h"
#include "cli/template_source.h"
#include "cli/text_prompt.h"

namespace hk::cli {
namespace {

constexpr std::int64_t kMostAnswers = 1024;
constexpr auto kLargestCount = std::numeric_limits<std::int64_t>::max();

bool is_openai(const Json& object) { return object.contains("custom_id") && object.contains("body"); }

AnswerForm openai_form(const Json& object) {
  const auto url = object.find("url");
  if (url != object.end() && url->is_string()) {
    const auto& path = url->get_ref<const std::string&>();
    if (path.ends_with("/chat/completions")) return AnswerForm::kChatCompletion;
    if (path.ends_with("/completions")) return AnswerForm::kCompletion;
    throw Error(
        fmt::format("the url '{}' is not answered here; there are /v1/chat/completions and /v1/completions", path));
  }
  return object.at("body").contains("messages") ? AnswerForm::kChatCompletion : AnswerForm::kCompletion;
}

}  // namespace

/// A request while its fields are read.
struct RequestBuilder::Draft {
  BatchRequest out;
  const Json* prompt = nullptr;
  const Json* messages = nullptr;
  const Json* tokens = nullptr;
  ConversationJson conversation;
  std::optional<std::string> made_prompt;  // by a template
  std::vector<std::string> continuations;
  std::vector<std::vector<engine::TokenId>> continuation_tokens;
  bool continuation_list = false, scores = false;
  bool parse_special = false, begin_token = true;
  std::optional<std::size_t> alternatives;
  bool wants_scores = false;
};

AnswerShape error_shape(const InputLine& line) {
  AnswerShape shape;
  shape.line = line.number;
  shape.id_json = line.id_json;
  if (line.object != nullptr && is_openai(*line.object)) shape.form = AnswerForm::kCompletion;
  return shape;
}

RequestBuilder::RequestBuilder(const RunningModel& running, BatchDefaults defaults)
    : running_(running), defaults_(std::move(defaults)) {}

const PromptBuilder& RequestBuilder::prompts() {
  if (prompts_ == nullptr)
    prompts_ = std::make_unique<PromptBuilder>(
        *running_.reader, *running_.tokenizer,
        defaults_.chat_template ? *defaults_.chat_template : read_template(*running_.reader));
  return *prompts_;
}

BatchRequest RequestBuilder::build(const InputLine& line) {
  Draft draft;
  draft.out.shape = error_shape(line);
  engine::Request& request = draft.out.request;
  request.sampling = defaults_.sampling;
  request.sampling.seed = seed_of(line.id, defaults_.sampling.seed.value_or(0));
  request.max_tokens = defaults_.max_tokens;
  request.stop = defaults_.stop;
  request.show_special = defaults_.show_special;
  draft.parse_special = defaults_.parse_special;
  draft.begin_token = defaults_.begin_token;
  draft.scores = defaults_.score;
  if (is_openai(*line.object)) {
    read_openai(*line.object, draft);
  } else {
    read_native(*line.object, draft);
  }
  finish(draft);
  return std::move(draft.out);
}

/// Fields that both forms have.
bool RequestBuilder::read_common(const std::string& field, const Json& value, Draft& draft) const {
  engine::Request& request = draft.out.request;
  AnswerShape& shape = draft.out.shape;
  if (value.is_null()) return true;  // what many clients write for what they do not set
  if (set_sampling_field(request.sampling, field, value)) return true;
  if (field == "prompt") {
    draft.prompt = &value;
  } else if (field == "messages") {
    draft.messages = &value;
  } else if (field == "max_tokens" || field == "max_completion_tokens") {
    const auto count = field_integer(value, field, -1, kLargestCount);
    request.max_tokens = count < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(count));
  } else if (field == "stop") {
    request.stop = field_texts(value, field);
  } else if (field == "n") {
    request.samples = static_cast<std::size_t>(field_integer(value, field, 1, kMostAnswers));
    shape.list = request.samples > 1;
  } else if (field == "logprobs") {
    draft.wants_scores = !value.is_boolean() || value.get<bool>();
    if (!value.is_boolean())
      draft.alternatives = static_cast<std::size_t>(
          field_integer(value, field, 0, static_cast<std::int64_t>(running_.model->info().vocab_size)));
  } else if (field == "top_logprobs") {
    draft.wants_scores = true;
    draft.alternatives = static_cast<std::size_t>(
        field_integer(value, field, 0, static_cast<std::int64_t>(running_.model->info().vocab_size)));
  } else if (field == "echo") {
    shape.echo = field_boolean(value, field);
  } else if (field == "parse_special") {
    draft.parse_special = field_boolean(value, field);
  } else if (field == "add_special") {
    draft.begin_token = field_boolean(value, field);
  } else if (field == "show_special") {
    request.show_special = field_boolean(value, field);
  } else if (field == "metadata") {
    shape.metadata = json_text(value);
  } else if (field == "return_tokens") {
    shape.tokens = field_boolean(value, field);
  } else {
    return false;
  }
  return true;
}

void RequestBuilder::read_native(const Json& object, Draft& draft) const {
  const bool open = defaults_.prompt.has_value();  // fields are data then
  for (const auto& [field, value] : object.items()) {
    if (field == "id" || field == "custom_id") continue;
    if (open && (field == "prompt" || field == "messages" || field == "tokens")) continue;
    if (read_common(field, value, draft)) continue;
    if (field == "tokens") {
      draft.tokens = &value;
    } else if (field == "mode") {
      const auto& mode = field_text(value, field);
      if (mode != "generate" && mode != "score") refuse_field(value, field, "\"generate\" or \"score\"");
      draft.scores = mode == "score";
    } else if (field == "continuation") {
      draft.continuations = {field_text(value, field)};
    } else if (field == "continuations") {
      if (!value.is_array()) refuse_field(value, field, "a list of texts");
      draft.continuations = field_texts(value, field);
      draft.continuation_list = true;
    } else if (field == "continuation_tokens") {
      draft.continuation_tokens = {field_tokens(value, field)};
    } else if (field == "tools") {
      draft.conversation.tools = json_text(value);
    } else if (field == "documents") {
      draft.conversation.documents = json_text(value);
    } else if (field == "chat_template_kwargs") {
      if (!value.is_object()) refuse_field(value, field, "an object of template variables");
      draft.conversation.variables = json_text(value);
    } else if (field == "add_generation_prompt") {
      draft.conversation.add_generation_prompt = field_boolean(value, field);
    } else if (!open) {
      throw Error(
          fmt::format("the field '{}' is not known; what a request carries along belongs in 'metadata'", field));
    }
  }
  if (open) draft.made_prompt = defaults_.prompt->fill(object);
  if (defaults_.continuation) {
    draft.continuations = {defaults_.continuation->fill(object)};
    draft.scores = true;
  }
}

void RequestBuilder::read_openai(const Json& object, Draft& draft) const {
  const Json& body = object.at("body");
  if (!body.is_object()) refuse_field(body, "body", "an object");
  draft.out.shape.form = openai_form(object);
  draft.scores = false;
  // Say nothing about the text that is made, or ask for what is done anyway.
  static constexpr std::string_view kIgnored[] = {
      "model", "user", "store", "metadata", "safety_identifier", "service_tier", "stream_options"};
  for (const auto& [field, value] : body.items()) {
    if (std::find(std::begin(kIgnored), std::end(kIgnored), field) != std::end(kIgnored)) continue;
    if (read_common(field, value, draft)) continue;
    const bool harmless =
        (field == "stream" && value == false) || (field == "best_of" && value == 1) ||
        (field == "tools" && value.empty()) || (field == "tool_choice" && value == "none") ||
        field == "parallel_tool_calls" ||
        (field == "response_format" && value.is_object() && value.contains("type") && value["type"] == "text");
    if (!harmless)
      throw Error(fmt::format("'{}' is asked for with {}, which is not done here", field, json_text(value)));
  }
  const bool chat = draft.out.shape.form == AnswerForm::kChatCompletion;
  const Json* wanted = chat ? draft.messages : draft.prompt;
  if (wanted == nullptr) throw Error(fmt::format("the body has no '{}'", chat ? "messages" : "prompt"));
  if (chat) draft.prompt = nullptr;
  if (!chat) draft.messages = nullptr;
  if (!chat && draft.prompt->is_array()) {
    const Json& list = *draft.prompt;
    if (!list.empty() && list.front().is_number()) {
      draft.tokens = std::exchange(draft.prompt, nullptr);
    } else if (list.size() == 1) {
      draft.prompt = &list.front();
    } else {
      throw Error(fmt::format("'prompt' is a list of {}; expected one prompt a request", list.size()));
    }
  }
  if (chat) draft.out.shape.echo = false;
}

std::vector<engine::TokenId> RequestBuilder::prompt_ids(const Draft& draft) {
  if (draft.tokens != nullptr) return field_tokens(*draft.tokens, "tokens");
  if (draft.messages != nullptr) {
    ConversationJson conversation = draft.conversation;
    conversation.messages = plain_messages(*draft.messages);
    conversation.parse_special = draft.parse_special;
    return prompts().build(conversation);
  }
  const std::string& text = draft.made_prompt ? *draft.made_prompt : field_text(*draft.prompt, "prompt");
  if (!defaults_.chat) return encode_prompt(*running_.tokenizer, text, draft.parse_special, draft.begin_token);
  std::vector<ChatMessage> messages;
  if (!defaults_.system.empty()) messages.push_back({"system", defaults_.system});
  messages.push_back({"user", text});
  return prompts().build(messages, {.parse_special = draft.parse_special}).ids;
}

void RequestBuilder::finish(Draft& draft) {
  const int given = (draft.prompt != nullptr || draft.made_prompt ? 1 : 0) + (draft.messages != nullptr ? 1 : 0) +
                    (draft.tokens != nullptr ? 1 : 0);
  if (given != 1)
    throw Error(given == 0 ? "there is nothing to answer: expected 'prompt', 'messages' or 'tokens'"
                           : "'prompt', 'messages' and 'tokens' exclude each other");
  engine::Request& request = draft.out.request;
  AnswerShape& shape = draft.out.shape;
  request.sampling.validate();
  request.prompt = prompt_ids(draft);
  const bool plain = draft.messages == nullptr && !defaults_.chat;
  request.fresh_text = !plain;
  if (draft.wants_scores) request.logprobs = draft.alternatives.value_or(0);
  shape.token_scores = draft.wants_scores;
  shape.scored = draft.scores;
  if (!draft.scores && (!draft.continuations.empty() || !draft.continuation_tokens.empty()))
    throw Error("a 'continuation' belongs to \"mode\": \"score\"");
  if (draft.scores) {
    shape.list = draft.continuation_list;
    add_scored(draft);
    return;
  }
  if (shape.tokens || shape.token_scores) shape.prompt = request.prompt;
  if (!shape.echo) return;
  if (!plain) throw Error("'echo' is for a 'prompt' or 'tokens', not for a conversation");
  shape.echoed = draft.tokens != nullptr ? running_.tokenizer->decode(request.prompt, false)
                 : draft.made_prompt     ? *draft.made_prompt
                                         : field_text(*draft.prompt, "prompt");
  request.prompt_logprobs = draft.wants_scores;
}

/// Texts to score. Context and continuation are encoded as one text; what is scored begins with the first token that
/// the context alone would not have.
void RequestBuilder::add_scored(Draft& draft) {
  engine::Request& request = draft.out.request;
  const auto& context = request.prompt;
  const auto add = [&](std::vector<engine::TokenId> whole, std::size_t from) {
    if (from == 0)
      throw Error("nothing comes before the text to score; expected a 'prompt', or a vocabulary with a begin token");
    request.scored.push_back({std::move(whole), from});
  };
  const bool plain_text = draft.tokens == nullptr && draft.messages == nullptr && !defaults_.chat;
  for (const auto& text : draft.continuations) {
    std::vector<engine::TokenId> whole;
    if (plain_text) {
      const auto& prompt = draft.made_prompt ? *draft.made_prompt : draft.prompt->get_ref<const std::string&>();
      whole = encode_prompt(*running_.tokenizer, prompt + text, draft.parse_special, draft.begin_token);
    } else {
      whole = context;
      const auto rest = running_.tokenizer->encode(text, {.add_special = false, .parse_special = draft.parse_special});
      whole.insert(whole.end(), rest.begin(), rest.end());
    }
    const auto same = std::mismatch(context.begin(), context.end(), whole.begin(), whole.end()).first - context.begin();
    add(std::move(whole), static_cast<std::size_t>(same));
  }
  for (const auto& ids : draft.continuation_tokens) {
    auto whole = context;
    whole.insert(whole.end(), ids.begin(), ids.end());
    add(std::move(whole), context.size());
  }
  if (!request.scored.empty()) return;
  if (draft.continuation_list) throw Error("'continuations' is an empty list; expected at least one text");
  if (context.empty()) throw Error("the text to score is empty");
  request.scored.push_back({context, 1});  // all of the prompt
}

}  // namespace hk::cli
