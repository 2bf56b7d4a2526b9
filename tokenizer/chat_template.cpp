// Parsing, rendering and the standard context of chat templates.
#include "tokenizer/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/literals.h"
#include "tokenizer/jinja/parser.h"

namespace hk::tokenizer {
namespace {

using jinja::Value;

constexpr std::string_view kKnownRoles[] = {"system", "user",    "assistant",   "tool",        "developer", "function",
                                            "model",  "ipython", "observation", "environment", "human",     "gpt"};

[[noreturn]] void raise(const std::string& name, std::string_view source, std::size_t offset,
                        const jinja::Failure& failure) {
  const auto [line, column] = jinja::line_and_column(source, offset);
  const std::string place = fmt::format("chat template {}, line {}, column {}", name, line, column);
  const std::string kind = jinja::failure_name(failure.kind());
  const std::string sentence = failure.kind() == jinja::FailureKind::kRaised
                                   ? fmt::format("{}: the template refuses the conversation: {}", place, failure.what())
                                   : fmt::format("{}: {}: {}", place, kind, failure.what());
  throw TemplateError(sentence, kind, failure.what(), line, column);
}

/// Position of a surrogate written as three bytes, which no UTF-8 text may hold.
bool holds_surrogate(std::string_view text) {
  for (std::size_t at = text.find('\xED'); at != std::string_view::npos; at = text.find('\xED', at + 1))
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xA0) return true;
  return false;
}

Value with_trusted_role(const Value& message, const ChatTemplate& chat_template) {
  if (!message.is_dict()) return message;
  const Value* role = message.as_dict().find("role");
  if (role == nullptr || !role->is_string()) return message;
  const std::string_view text = role->view();
  const bool known = std::find(std::begin(kKnownRoles), std::end(kKnownRoles), text) != std::end(kKnownRoles);
  if (!known && !chat_template.has_literal(text)) return message;
  jinja::Dict out = message.as_dict();
  out.set("role", Value::string(text, jinja::Origin::kTemplate));
  return Value::dict(std::move(out));
}

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const jinja::Program> program, std::string name)
    : program_(std::move(program)),
      literals_(std::make_shared<const std::vector<std::string>>(jinja::string_literals(*program_))),
      name_(std::move(name)) {}

ChatTemplate ChatTemplate::parse(std::string_view source, std::string name) {
  if (const std::size_t at = find_invalid_utf8(source); at != source.size())
    throw Error(fmt::format("chat template {}: not valid UTF-8 at byte {}", name, at));
  try {
    return ChatTemplate(jinja::parse_program(source), std::move(name));
  } catch (const jinja::SyntaxFailure& failure) {
    raise(name, jinja::normalize_source(source), failure.offset(), failure);
  }
}

std::string_view ChatTemplate::source() const { return program_->source; }

bool ChatTemplate::has_literal(std::string_view text) const {
  return std::binary_search(literals_->begin(), literals_->end(), text);
}

RenderResult ChatTemplate::render_spans(const Value& context, const RenderOptions& options) const {
  if (!context.is_dict()) throw Error(fmt::format("chat template {}: the variables must be a JSON object", name_));
  const auto meter = std::make_shared<jinja::Meter>();
  meter->max_steps = options.max_steps;
  meter->max_live_bytes = options.max_memory;
  const jinja::MeterScope scope(meter);
  jinja::Interpreter interpreter(*program_, context, options.clock, options.max_output);
  try {
    jinja::Text text = interpreter.render();
    if (holds_surrogate(text.view()))
      jinja::fail(jinja::FailureKind::kValue, "the prompt holds half of a surrogate pair, which is no character");
    RenderResult result;
    for (const auto& run : text.runs())
      result.spans.push_back({run.begin, run.end, run.origin == jinja::Origin::kTemplate});
    result.text = std::move(text).take();
    return result;
  } catch (const jinja::Failure& failure) {
    raise(name_, program_->source, interpreter.offset(), failure);
  } catch (const std::bad_alloc&) {
    throw Error(fmt::format("chat template {}: out of memory", name_), ErrorKind::kResource);
  }
}

Value make_context(const ChatTemplate& chat_template, const Conversation& conversation) {
  jinja::Dict out;
  if (conversation.messages.is_list()) {
    std::vector<Value> messages;
    for (const Value& message : conversation.messages.items())
      messages.push_back(with_trusted_role(message, chat_template));
    out.set("messages", Value::list(std::move(messages)));
  } else {
    out.set("messages", conversation.messages);
  }
  out.set("add_generation_prompt", Value::boolean(conversation.add_generation_prompt));
  out.set("tools", conversation.tools);
  out.set("documents", conversation.documents);
  for (const auto& [name, text] : conversation.special_tokens) out.set(name, Value::string(text));
  if (conversation.extra.is_dict())
    for (const auto& [name, value] : conversation.extra.as_dict().entries()) out.set(name, value);
  return Value::dict(std::move(out));
}

}  // namespace hk::tokenizer
