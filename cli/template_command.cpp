// hk-run template: a conversation as the prompt that the model sees, without running the model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/streams.h"
#include "cli/template_source.h"
#include "engine/container/model_reader.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/clock.h"
#include "tokenizer/jinja/json.h"

namespace hk::cli {
namespace {

namespace jinja = tokenizer::jinja;
using jinja::Value;
using tokenizer::ChatTemplate;
using tokenizer::Conversation;

struct Options {
  std::string model;
  TemplateOptions source;
  std::string messages;
  std::string tools;
  std::vector<std::string> variables;
  std::string now;
  bool no_generation_prompt = false;
  bool jsonl = false;
};

/// What the options fix for all conversations.
struct Setup {
  std::optional<ChatTemplate> chat_template;
  std::vector<std::pair<std::string, std::string>> special_tokens;
  jinja::Dict variables;
  tokenizer::RenderOptions render;
};

Value read_json(const std::string& path, const char* option) {
  const std::string text = read_text(path);
  try {
    return jinja::parse_json(text);
  } catch (const Error& error) {
    throw Error(fmt::format("{} {}: {}", option, path, error.what()));
  }
}

void require_list(const Value& value, std::string_view what) {
  if (!value.is_list()) throw Error(fmt::format("{}: expected a JSON list", what));
}

Setup make_setup(const Options& options) {
  Setup setup;
  setup.chat_template = options.source.chosen();
  if (!options.model.empty()) {
    const auto reader = engine::open_model(options.model);
    setup.special_tokens = read_special_tokens(*reader);
    if (!setup.chat_template) setup.chat_template = read_template(*reader);
  }
  for (const std::string& assignment : options.variables) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error(fmt::format("--set '{}': expected NAME=JSON", assignment), ErrorKind::kUsage);
    try {
      setup.variables.set(std::string_view(assignment).substr(0, equals),
                          jinja::parse_json(std::string_view(assignment).substr(equals + 1)));
    } catch (const Error& error) {
      throw Error(
          fmt::format("--set '{}': {} (a text is written in quotes: NAME='\"text\"')", assignment, error.what()),
          ErrorKind::kUsage);
    }
  }
  if (!options.now.empty()) setup.render.clock = jinja::fixed_clock(jinja::parse_clock(options.now));
  return setup;
}

/// Further variables; those called ..._token are texts of the vocabulary and count as the template's.
void add_variables(Conversation& conversation, const jinja::Dict& variables) {
  jinja::Dict extra;
  if (conversation.extra.is_dict()) extra = conversation.extra.as_dict();
  for (const auto& [name, value] : variables.entries()) {
    if (name.view().ends_with("_token") && value.is_string()) {
      conversation.special_tokens.emplace_back(name.view(), value.view());
    } else {
      extra.set(name, value);
    }
  }
  conversation.extra = Value::dict(std::move(extra));
}

void run_once(const Options& options, const Setup& setup) {
  if (!setup.chat_template)
    throw Error("a template is needed: a model FILE, --chat-template-file or --chat-template", ErrorKind::kUsage);
  if (options.messages.empty()) throw Error("--messages is needed (or --jsonl)", ErrorKind::kUsage);
  Conversation conversation;
  conversation.messages = read_json(options.messages, "--messages");
  require_list(conversation.messages, fmt::format("--messages {}", options.messages));
  if (!options.tools.empty()) {
    conversation.tools = read_json(options.tools, "--tools");
    require_list(conversation.tools, fmt::format("--tools {}", options.tools));
  }
  conversation.add_generation_prompt = !options.no_generation_prompt;
  conversation.special_tokens = setup.special_tokens;
  add_variables(conversation, setup.variables);
  write_answer(setup.chat_template->render(make_context(*setup.chat_template, conversation), setup.render));
}

// --- cases on standard input, one JSON object a line ---

const Value* find(const Value& line, std::string_view name) {
  const Value* found = line.as_dict().find(name);
  return found == nullptr || found->is_none() ? nullptr : found;
}

class CaseRunner {
 public:
  CaseRunner(const Options& options, const Setup& setup) : options_(options), setup_(setup) {}

  std::string run(const Value& line) {
    if (!line.is_dict()) throw Error("expected a JSON object");
    const ChatTemplate& chat_template = template_of(line);
    if (const Value* context = find(line, "context")) return chat_template.render(*context, setup_.render);
    Conversation conversation;
    const Value* messages = find(line, "messages");
    if (messages == nullptr) throw Error("expected \"messages\" or \"context\"");
    conversation.messages = *messages;
    if (const Value* tools = find(line, "tools")) conversation.tools = *tools;
    if (const Value* documents = find(line, "documents")) conversation.documents = *documents;
    conversation.add_generation_prompt = !options_.no_generation_prompt;
    if (const Value* wanted = find(line, "add_generation_prompt")) {
      if (!wanted->is_bool()) throw Error("\"add_generation_prompt\": expected true or false");
      conversation.add_generation_prompt = wanted->as_bool();
    }
    conversation.special_tokens = setup_.special_tokens;
    add_variables(conversation, setup_.variables);
    if (const Value* extra = find(line, "extra")) {
      if (!extra->is_dict()) throw Error("\"extra\": expected an object of variables");
      add_variables(conversation, extra->as_dict());
    }
    return chat_template.render(make_context(chat_template, conversation), setup_.render);
  }

 private:
  const ChatTemplate& template_of(const Value& line) {
    const Value* source = find(line, "template");
    if (source == nullptr) {
      if (setup_.chat_template) return *setup_.chat_template;
      throw Error("expected \"template\", or a template given by the options");
    }
    if (!source->is_string()) throw Error("\"template\": expected a string");
    if (!parsed_ || parsed_source_ != source->view()) {  // often many cases in a row share one
      parsed_.reset();
      parsed_ = ChatTemplate::parse(source->view(), "of this line");
      parsed_source_ = source->view();
    }
    return *parsed_;
  }

  const Options& options_;
  const Setup& setup_;
  std::optional<ChatTemplate> parsed_;
  std::string parsed_source_;
};

/// Each line is answered by {"text"} or {"error"}. A template that refuses a conversation is an answer; a line that is
/// no case makes the exit code 1 in the end.
void run_lines(const Options& options, const Setup& setup) {
  const InterruptGuard guard;
  CaseRunner runner(options, setup);
  jinja::JsonStyle ascii;
  ascii.ensure_ascii = true;  // whatever reads lines finds exactly one line
  bool failed = false;
  std::size_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    InterruptGuard::check();
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    jinja::Dict reply;
    try {
      reply.set("text", Value::string(runner.run(jinja::parse_json(line))));
    } catch (const tokenizer::TemplateError& error) {
      reply.set("error", Value::string(error.raised() ? error.message() : error.what()));
      reply.set("kind", Value::string(error.kind()));
      reply.set("line", Value::integer(static_cast<std::int64_t>(error.line())));
      reply.set("column", Value::integer(static_cast<std::int64_t>(error.column())));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kInput) throw;
      failed = true;
      reply.set("error", Value::string(fmt::format("line {}: {}", number, error.what())));
    }
    write_answer(fmt::format("{}\n", jinja::dump_json(Value::dict(std::move(reply)), ascii).view()));
  }
  InterruptGuard::check();
  if (failed) throw CLI::RuntimeError(static_cast<int>(ErrorKind::kInput));
}

void run(const Options& options) {
  const Setup setup = make_setup(options);
  if (options.jsonl) {
    run_lines(options, setup);
  } else {
    run_once(options, setup);
  }
}

}  // namespace

void add_template_command(CLI::App& app) {
  auto* command = app.add_subcommand("template", "Show the prompt that a conversation becomes");
  const auto options = std::make_shared<Options>();
  command->add_option("model", options->model, "Model file whose template and special tokens are used")
      ->type_name("FILE");
  options->source.add_to(*command);
  command->add_option("--messages", options->messages, "JSON list of messages ('-': standard input)")
      ->type_name("FILE");
  command->add_option("--tools", options->tools, "JSON list of tools")->type_name("FILE");
  command->add_flag("--no-generation-prompt", options->no_generation_prompt, "Do not begin the assistant's answer");
  command->add_option("--set", options->variables, "Set a variable of the template (repeatable)")
      ->type_name("NAME=JSON");
  command->add_option("--now", options->now, "Time that the template sees instead of the clock")->type_name("TIME");
  command->add_flag("--jsonl", options->jsonl,
                    "Render cases from standard input, one a line: {\"template\", \"messages\", \"tools\", "
                    "\"add_generation_prompt\", \"extra\"} or {\"template\", \"context\"}");
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
