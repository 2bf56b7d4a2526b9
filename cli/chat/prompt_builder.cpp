// Template and tokenizer put together.
#include "cli/chat/prompt_builder.h"

#include <string_view>

#include "cli/chat/thinking.h"
#include "cli/template_source.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/prompt_encoder.h"

namespace hk::cli {
namespace {

namespace jinja = tokenizer::jinja;
using engine::TokenId;
using tokenizer::PromptSpan;

jinja::Value text_value(std::string_view text, bool trusted) {
  return jinja::Value::string(text, trusted ? jinja::Origin::kTemplate : jinja::Origin::kData);
}

/// Messages whose contents may spell control tokens, those of the assistant excepted.
jinja::Value with_trusted_contents(const jinja::Value& messages) {
  if (!messages.is_list()) return messages;
  std::vector<jinja::Value> list;
  for (const jinja::Value& message : messages.items()) {
    const jinja::Value* role = message.is_dict() ? message.as_dict().find("role") : nullptr;
    const jinja::Value* content = message.is_dict() ? message.as_dict().find("content") : nullptr;
    if (role == nullptr || content == nullptr || !content->is_string() ||
        (role->is_string() && role->view() == "assistant")) {
      list.push_back(message);
      continue;
    }
    jinja::Dict dict = message.as_dict();
    dict.set("content", text_value(content->view(), true));
    list.push_back(jinja::Value::dict(std::move(dict)));
  }
  return jinja::Value::list(std::move(list));
}

/// Bytes of a rendered prompt that are an answer whose tokens are known.
struct KnownPart {
  std::size_t begin, end;
  std::span<const TokenId> ids;
};

/// Where the known answers are in the prompt, in order.
std::vector<KnownPart> find_known(const tokenizer::RenderResult& rendered, std::span<const ChatMessage> messages,
                                  const tokenizer::Tokenizer& tokenizer) {
  std::vector<KnownPart> parts;
  std::size_t next = 0;
  for (const auto& span : rendered.spans) {
    if (span.trusted) continue;
    const auto text = std::string_view(rendered.text).substr(span.begin, span.end - span.begin);
    std::size_t at = next;
    while (at < messages.size() && (messages[at].ids.empty() || messages[at].text != text)) ++at;
    if (at == messages.size()) continue;
    next = at + 1;
    std::string spelled;
    for (const TokenId id : messages[at].ids) spelled += tokenizer.piece(id);
    if (spelled == text) {
      parts.push_back({span.begin, span.end, messages[at].ids});
    } else if (span.begin > 0 && rendered.text[span.begin - 1] == ' ' && spelled == " " + std::string(text)) {
      // The blank before the text is part of its first token.
      parts.push_back({span.begin - 1, span.end, messages[at].ids});
    }
  }
  return parts;
}

/// The spans that cover bytes [begin, end) of the prompt.
std::vector<PromptSpan> spans_between(const tokenizer::RenderResult& rendered, std::size_t begin, std::size_t end) {
  std::vector<PromptSpan> spans;
  for (const auto& span : rendered.spans) {
    const std::size_t from = std::max(begin, span.begin), to = std::min(end, span.end);
    if (from < to) spans.push_back({std::string_view(rendered.text).substr(from, to - from), span.trusted});
  }
  return spans;
}

}  // namespace

struct PromptBuilder::Impl {
  const tokenizer::Tokenizer& tokenizer;
  tokenizer::ChatTemplate chat_template;
  tokenizer::PromptEncoder encoder;
  std::vector<std::pair<std::string, std::string>> specials;
  const ThinkFormat* think;
  EarlierReasoning earlier;

  tokenizer::RenderResult render(tokenizer::Conversation conversation) const {
    conversation.special_tokens = specials;
    return chat_template.render_spans(make_context(chat_template, conversation));
  }
  std::vector<TokenId> encode(const tokenizer::RenderResult& rendered, std::span<const KnownPart> known) const;
  std::vector<TokenId> with_begin(std::vector<TokenId> ids) const;
  jinja::Value message_value(const ChatMessage& message, bool parse_special) const;
};

PromptBuilder::PromptBuilder(const engine::ModelReader& reader, const tokenizer::Tokenizer& tokenizer,
                             tokenizer::ChatTemplate chat_template)
    : impl_(new Impl{tokenizer, std::move(chat_template), tokenizer::PromptEncoder(tokenizer),
                     read_special_tokens(reader), nullptr, EarlierReasoning::kDropped}) {
  impl_->think = find_think_format(impl_->chat_template, tokenizer);
  impl_->earlier = earlier_reasoning(impl_->chat_template, impl_->think);
}
PromptBuilder::~PromptBuilder() = default;

const tokenizer::ChatTemplate& PromptBuilder::chat_template() const { return impl_->chat_template; }
const ThinkFormat* PromptBuilder::think_format() const { return impl_->think; }

jinja::Value PromptBuilder::Impl::message_value(const ChatMessage& message, bool parse_special) const {
  const bool trusted = parse_special && message.role != "assistant";
  jinja::Dict dict;
  dict.set("role", text_value(message.role, false));
  std::string content = message.text;
  if (!message.reasoning.empty() && earlier == EarlierReasoning::kContent)
    content = std::string(think->open) + "\n" + message.reasoning + "\n" + std::string(think->close) + "\n\n" + content;
  dict.set("content", text_value(content, trusted));
  if (!message.reasoning.empty() && earlier == EarlierReasoning::kField)
    dict.set("reasoning_content", text_value(message.reasoning, false));
  if (!message.reasoning.empty() && earlier == EarlierReasoning::kThinking)
    dict.set("thinking", text_value(message.reasoning, false));
  return jinja::Value::dict(std::move(dict));
}

ChatPrompt PromptBuilder::build(std::span<const ChatMessage> messages, const PromptOptions& options) const {
  std::vector<jinja::Value> list;
  for (const auto& message : messages) list.push_back(impl_->message_value(message, options.parse_special));
  tokenizer::Conversation conversation;
  conversation.messages = jinja::Value::list(std::move(list));
  conversation.add_generation_prompt = options.begin_answer;
  jinja::Dict extra;
  for (const auto& [name, json] : options.variables) extra.set(name, jinja::parse_json(json));
  conversation.extra = jinja::Value::dict(std::move(extra));
  const auto rendered = impl_->render(std::move(conversation));
  ChatPrompt prompt;
  prompt.ids = impl_->encode(rendered, find_known(rendered, messages, impl_->tokenizer));
  prompt.in_reasoning =
      options.begin_answer && impl_->think != nullptr && ends_in_open_reasoning(*impl_->think, rendered.text);
  return prompt;
}

std::vector<TokenId> PromptBuilder::build(const ConversationJson& json) const {
  tokenizer::Conversation conversation;
  conversation.messages = jinja::parse_json(json.messages);
  if (json.parse_special) conversation.messages = with_trusted_contents(conversation.messages);
  if (!json.tools.empty()) conversation.tools = jinja::parse_json(json.tools);
  if (!json.documents.empty()) conversation.documents = jinja::parse_json(json.documents);
  if (!json.variables.empty()) conversation.extra = jinja::parse_json(json.variables);
  conversation.add_generation_prompt = json.add_generation_prompt;
  return impl_->encode(impl_->render(std::move(conversation)), {});
}

std::vector<TokenId> PromptBuilder::Impl::with_begin(std::vector<TokenId> ids) const {
  // Most templates write the begin token themselves; some vocabularies put it before every text, also those of
  // templates that leave it out. Never twice.
  const auto bos = tokenizer.bos();
  if (bos && tokenizer.adds_bos() && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

std::vector<TokenId> PromptBuilder::Impl::encode(const tokenizer::RenderResult& rendered,
                                                 std::span<const KnownPart> known) const {
  std::vector<TokenId> ids;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= known.size(); ++i) {
    const std::size_t end = i < known.size() ? known[i].begin : rendered.text.size();
    const auto part = encoder.encode(spans_between(rendered, begin, end));
    // Only a control token is sure to be a border between tokens: elsewhere the whole text is encoded.
    if (i > 0 && begin < end && (part.empty() || !tokenizer.is_control(part.front()))) return encode(rendered, {});
    ids.insert(ids.end(), part.begin(), part.end());
    if (i == known.size()) break;
    ids.insert(ids.end(), known[i].ids.begin(), known[i].ids.end());
    begin = known[i].end;
  }
  return with_begin(std::move(ids));
}

}  // namespace hk::cli
