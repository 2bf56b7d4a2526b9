// ChatTemplate: a conversation as the prompt a model was trained on, by the Jinja template that comes with the model.
//
// Layer: tokenizer (text only). Rendering is exact: what Jinja2 as set up by Transformers gives, down to blanks, or an
// error with template, line and column. The sandbox is that of Transformers: attributes that begin with an underscore
// and methods that change a list or dict in place are refused. Templates are not trusted: steps, depth, memory and
// output are limited.
//
// The result says which bytes come from the template and which from the conversation, so that a message that spells a
// control token stays text (see jinja/text.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tokenizer/jinja/clock.h"
#include "tokenizer/jinja/value.h"

namespace hk::tokenizer {

namespace jinja {
struct Program;
}

/// Why a template could not be parsed or rendered.
class TemplateError : public Error {
 public:
  TemplateError(const std::string& sentence, std::string kind, std::string message, std::size_t line,
                std::size_t column)
      : Error(sentence), kind_(std::move(kind)), message_(std::move(message)), line_(line), column_(column) {}

  /// "raise_exception", or what Jinja2 calls it: "TemplateSyntaxError", "UndefinedError", "TypeError", "LimitError",
  /// ...
  const std::string& kind() const { return kind_; }
  /// Without the place; for raise_exception exactly the template's message.
  const std::string& message() const { return message_; }
  bool raised() const { return kind_ == "raise_exception"; }
  std::size_t line() const { return line_; }
  std::size_t column() const { return column_; }

 private:
  std::string kind_, message_;
  std::size_t line_, column_;
};

struct RenderOptions {
  std::uint64_t max_steps = 20'000'000;             ///< about a second
  std::size_t max_memory = std::size_t{128} << 20;  ///< bytes held by values at once
  std::size_t max_output = std::size_t{32} << 20;   ///< bytes
  jinja::Clock clock = jinja::local_clock();        ///< for strftime_now
};

/// A run of bytes; trusted ones were written by the template (or are special tokens), the others by the caller.
struct RenderSpan {
  std::size_t begin, end;
  bool trusted;
};

struct RenderResult {
  std::string text;
  std::vector<RenderSpan> spans;  ///< cover the text in order; neighbours differ in trust
};

class ChatTemplate {
 public:
  /// `name` is for messages. Throws TemplateError.
  static ChatTemplate parse(std::string_view source, std::string name);

  /// `context` is a dict of all variables. Throws TemplateError. Safe from several threads.
  RenderResult render_spans(const jinja::Value& context, const RenderOptions& options = {}) const;
  std::string render(const jinja::Value& context, const RenderOptions& options = {}) const {
    return render_spans(context, options).text;
  }

  const std::string& name() const { return name_; }
  /// The template itself, line ends and a last line break as Jinja takes them.
  std::string_view source() const;
  /// True when the template holds this very text as a string literal.
  bool has_literal(std::string_view text) const;

 private:
  ChatTemplate(std::shared_ptr<const jinja::Program> program, std::string name);

  std::shared_ptr<const jinja::Program> program_;
  std::shared_ptr<const std::vector<std::string>> literals_;  // sorted
  std::string name_;
};

/// What a conversation brings; values as from jinja::parse_json.
struct Conversation {
  jinja::Value messages;   ///< list of dicts
  jinja::Value tools;      ///< none when there are none
  jinja::Value documents;  ///< none when there are none
  bool add_generation_prompt = true;
  /// bos_token, eos_token, unk_token, pad_token, ...: only those that the vocabulary has.
  std::vector<std::pair<std::string, std::string>> special_tokens;
  jinja::Value extra;  ///< dict of further variables, or none; these win
};

/// The variables every template can count on. Roles that are well known or that the template names itself count as the
/// template's text: '<|' + role + '|>' is how some templates write their control tokens.
jinja::Value make_context(const ChatTemplate& chat_template, const Conversation& conversation);

/// Source of a template of ours by name ("chatml", "llama3", ...); nullopt for other names. Chosen by the user, never
/// guessed.
std::optional<std::string_view> find_builtin_template(std::string_view name);
std::vector<std::string_view> builtin_template_names();

}  // namespace hk::tokenizer
