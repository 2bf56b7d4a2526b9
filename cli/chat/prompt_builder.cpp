// Template and tokenizer put together.
#include "cli/chat/prompt_builder.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/error.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/json.h"
#include "tokenizer/prompt_encoder.h"

namespace hk::cli {
namespace {

namespace jinja = tokenizer::jinja;

tokenizer::ChatTemplate read_template(const engine::ModelReader& reader, const std::optional<std::string>& given) {
  if (given) return tokenizer::ChatTemplate::parse(*given, "the template of --template");
  const auto source = reader.metadata().string("tokenizer.chat_template");
  if (!source)
    throw Error(
        fmt::format("{}: there is no chat template (tokenizer.chat_template); a text model is run with `generate`, and "
                    "--template FILE gives a template",
                    reader.path()));
  return tokenizer::ChatTemplate::parse(*source, fmt::format("{}: tokenizer.chat_template", reader.path()));
}

// Texts of the special tokens that templates may ask for, where the file names them.
std::vector<std::pair<std::string, std::string>> special_tokens(const engine::ModelReader& reader,
                                                                const tokenizer::Tokenizer& tokenizer) {
  std::vector<std::pair<std::string, std::string>> texts;
  const auto add = [&](const char* variable, const char* key) {
    const auto id = reader.metadata().integer(key);
    if (!id || *id < 0 || static_cast<std::uint64_t>(*id) >= tokenizer.size()) return;
    texts.emplace_back(variable, tokenizer.token_text(static_cast<engine::TokenId>(*id)));
  };
  add("bos_token", "tokenizer.ggml.bos_token_id");
  add("eos_token", "tokenizer.ggml.eos_token_id");
  add("unk_token", "tokenizer.ggml.unknown_token_id");
  add("pad_token", "tokenizer.ggml.padding_token_id");
  return texts;
}

jinja::Value data_text(std::string_view text) { return jinja::Value::string(text, jinja::Origin::kData); }

}  // namespace

struct PromptBuilder::Impl {
  const tokenizer::Tokenizer& tokenizer;
  tokenizer::ChatTemplate chat_template;
  tokenizer::PromptEncoder encoder;
  std::vector<std::pair<std::string, std::string>> specials;

  std::vector<engine::TokenId> encode(tokenizer::Conversation conversation) const;
};

PromptBuilder::PromptBuilder(const engine::ModelReader& reader, const tokenizer::Tokenizer& tokenizer,
                             const std::optional<std::string>& template_text)
    : impl_(new Impl{tokenizer, read_template(reader, template_text), tokenizer::PromptEncoder(tokenizer),
                     special_tokens(reader, tokenizer)}) {}
PromptBuilder::~PromptBuilder() = default;

std::vector<engine::TokenId> PromptBuilder::build(std::span<const ChatMessage> messages) const {
  std::vector<jinja::Value> list;
  for (const auto& message : messages) {
    jinja::Dict dict;
    dict.set("role", data_text(message.role));
    dict.set("content", data_text(message.text));
    list.push_back(jinja::Value::dict(std::move(dict)));
  }
  tokenizer::Conversation conversation;
  conversation.messages = jinja::Value::list(std::move(list));
  return impl_->encode(std::move(conversation));
}

std::vector<engine::TokenId> PromptBuilder::build(const ConversationJson& json) const {
  tokenizer::Conversation conversation;
  conversation.messages = jinja::parse_json(json.messages);
  if (!json.tools.empty()) conversation.tools = jinja::parse_json(json.tools);
  if (!json.documents.empty()) conversation.documents = jinja::parse_json(json.documents);
  if (!json.variables.empty()) conversation.extra = jinja::parse_json(json.variables);
  conversation.add_generation_prompt = json.add_generation_prompt;
  return impl_->encode(std::move(conversation));
}

std::vector<engine::TokenId> PromptBuilder::Impl::encode(tokenizer::Conversation conversation) const {
  conversation.special_tokens = specials;
  const auto rendered = chat_template.render_spans(make_context(chat_template, conversation));
  std::vector<tokenizer::PromptSpan> spans;
  for (const auto& span : rendered.spans)
    spans.push_back({std::string_view(rendered.text).substr(span.begin, span.end - span.begin), span.trusted});
  auto ids = encoder.encode(spans);
  // Most templates write the begin token themselves; some vocabularies put it before every text, also those of
  // templates that leave it out. Never twice.
  const auto bos = tokenizer.bos();
  if (bos && tokenizer.adds_bos() && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

}  // namespace hk::cli
