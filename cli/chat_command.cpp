// hk-run chat: a conversation with a model, on a terminal, in a pipe, or as a single question.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/chat/conversation.h"
#include "cli/chat/repl.h"
#include "cli/chat/session_list.h"
#include "cli/chat/session_store.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "cli/streams.h"
#include "cli/template_source.h"
#include "cli/text.h"

namespace hk::cli {
namespace {

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  TemplateOptions chat_template;
  std::optional<std::string> question;
  std::optional<std::string> system;
  std::optional<std::string> system_file;
  std::string template_variables;
  std::string think;
  long long think_budget = -1;
  std::string overflow = "stop";
  std::string session;
  std::string remove_session;
  bool list_sessions = false;
  long long max_tokens = -1;
  std::vector<std::string> stop;
  bool parse_special = false;
  bool quiet = false;
};

std::optional<std::size_t> limit(long long tokens, const char* flag) {
  if (tokens < -1)
    throw Error(fmt::format("{}: {} is no number of tokens; expected -1 (no limit) or more", flag, tokens),
                ErrorKind::kUsage);
  return tokens < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(tokens));
}

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

ViewOptions view_options(const Options& options) {
  ViewOptions view;
  view.terminal = stdout_is_terminal();
  view.colours = view.terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  // In a pipe reasoning is shown only when it is asked for.
  view.reasoning = options.think == "hide" || (options.think.empty() && !view.terminal) ? ReasoningView::kHidden
                   : options.think == "collapse"                                        ? ReasoningView::kCounted
                                                                                        : ReasoningView::kShown;
  return view;
}

ConversationOptions conversation_options(const Options& options) {
  ConversationOptions chat;
  if (!options.think.empty()) chat.think = options.think != "off";
  chat.think_budget = limit(options.think_budget, "--think-budget");
  chat.overflow = options.overflow == "error"         ? Overflow::kError
                  : options.overflow == "drop-oldest" ? Overflow::kDropOldest
                                                      : Overflow::kStop;
  chat.parse_special = options.parse_special;
  chat.variables = parse_template_variables(options.template_variables);
  return chat;
}

std::optional<std::string> system_message(const Options& options) {
  if (options.system && options.system_file)
    throw Error("chat: --system and --system-prompt-file both give a system message; one of them is enough",
                ErrorKind::kUsage);
  return options.system_file ? std::optional(read_text(*options.system_file)) : options.system;
}

void greet(const RunningModel& running, const Conversation& conversation) {
  const auto& info = running.model->info();
  const int threads = running.threads->shares().decode;
  write_note(fmt::format("{}, context {} tokens, {} {} ({}), {}. /help lists the commands.",
                         printable(info.name.empty() ? info.architecture : info.name), conversation.context_size(),
                         threads, threads == 1 ? "thread" : "threads", running.threads_why, running.kernels->level));
}

void run(const Options& options) {
  if (options.list_sessions) return write_session_list();
  if (!options.remove_session.empty()) return remove_session(options.remove_session);
  if (options.model.file.empty())
    throw Error("chat: a model is needed: hk-run chat FILE (or --sessions, --remove-session NAME)", ErrorKind::kUsage);
  // What is wrong with the options is told before the model is opened.
  options.sampling.settings();
  options.chat_template.chosen();
  auto chat_options = conversation_options(options);
  const auto system = system_message(options);
  ReplOptions repl_options;
  repl_options.terminal =
      !options.question && stdin_is_terminal() && stdout_is_terminal() && variable("TERM") != "dumb";
  repl_options.statistics = !options.quiet && !repl_options.terminal;
  repl_options.view = view_options(options);
  repl_options.generate.max_tokens = limit(options.max_tokens, "-n");
  repl_options.generate.stop = options.stop;
  repl_options.sampling = &options.sampling;

  std::unique_ptr<SessionFile> session;
  if (!options.session.empty()) session = std::make_unique<SessionFile>(options.session, options.model.file);
  const RunningModel running = open_running_model(options.model);
  chat_options.sampling = options.sampling.settings(*running.reader);
  Conversation conversation(running, options.chat_template.chosen_or(*running.reader), std::move(chat_options));
  if (options.think == "off" && conversation.knows_thinking() && !conversation.can_switch_thinking())
    write_note("--think off: the template has no switch for thinking; --think-budget 0 ends it at once");
  if (repl_options.terminal && !options.quiet) greet(running, conversation);
  Repl repl(conversation, std::move(repl_options), session.get());
  if (system) conversation.set_system(*system);
  if (options.question) {
    if (!repl.ask(*options.question == "-" ? read_text("-") : *options.question))
      throw Error("interrupted", ErrorKind::kInterrupted);
    return;
  }
  repl.run();
}

void add_answer_options(CLI::App& command, Options& options) {
  command.add_option("-p,--prompt", options.question, "Ask this one question, answer and stop; - reads standard input");
  command.add_option("--system,--system-prompt", options.system, "System message: how the model should behave");
  command.add_option("--system-prompt-file", options.system_file,
                     "A file with the system message; - is standard input");
  command
      .add_option("-n,--max-tokens,--predict,--n-predict", options.max_tokens,
                  "Tokens of an answer at most; -1: no limit")
      ->capture_default_str();
  command
      .add_option("--stop,--reverse-prompt", options.stop,
                  "End an answer before this text; may be given more than once")
      ->take_all();
  command.add_flag("--parse-special", options.parse_special,
                   "Texts of control tokens in messages become these tokens; else they stay text");
  command.add_flag("-q,--quiet", options.quiet, "No greeting, no statistics");
}

void add_chat_options(CLI::App& command, Options& options) {
  options.chat_template.add_to(command);
  command.add_option("--chat-template-kwargs", options.template_variables,
                     "JSON object of further variables of the template");
  command
      .add_option("--think", options.think,
                  "Let the model think or not (on, off), or think unseen (collapse: a counter, hide); default: as its "
                  "template does")
      ->check(CLI::IsMember({"on", "off", "collapse", "hide"}));
  command
      .add_option("--think-budget,--reasoning-budget", options.think_budget,
                  "Tokens of thinking at most, then the answer begins; -1: no limit")
      ->capture_default_str();
  command
      .add_option("--overflow", options.overflow,
                  "When the context is full: stop and say so, drop-oldest turns, or error (ends a script)")
      ->check(CLI::IsMember({"stop", "drop-oldest", "error"}))
      ->capture_default_str();
  constexpr auto kSessions = "Sessions";
  command.add_option("--session", options.session, "Keep the chat under this name, and go on with it")
      ->group(kSessions);
  command.add_flag("--sessions", options.list_sessions, "List what is kept")->group(kSessions);
  command.add_option("--remove-session", options.remove_session, "Remove what is kept under a name")->group(kSessions);
}

}  // namespace

void add_chat_command(CLI::App& app) {
  auto* command = app.add_subcommand("chat", "Talk with a model");
  const auto options = std::make_shared<Options>();
  options->model.add_to(*command);
  command->get_option("file")->required(false);
  options->model.add_memory_limit_to(*command);
  add_answer_options(*command, *options);
  add_chat_options(*command, *options);
  options->sampling.add_to(*command);
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
