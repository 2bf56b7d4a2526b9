// hk-run chat: a conversation with a model, on a terminal, in a pipe, or as a single question.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/chat/conversation.h"
#include "cli/chat/repl.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  std::optional<std::string> question;
  std::string system;
  std::optional<std::string> template_file;
  long long max_tokens = -1;
  std::vector<std::string> stop;
  bool quiet = false;
};

void greet(const RunningModel& running, const Conversation& conversation) {
  const auto& info = running.model->info();
  write_note(fmt::format("{}, context {} tokens, {} threads ({}), {}. /help lists the commands.",
                         info.name.empty() ? info.architecture : info.name, conversation.context_size(),
                         running.threads->shares().decode, running.threads_why, running.kernels->level));
}

void run(const Options& options) {
  const auto settings = options.sampling.settings();
  if (options.max_tokens < -1)
    throw Error(fmt::format("-n: {} is no number of tokens; expected -1 (no limit) or more", options.max_tokens),
                ErrorKind::kUsage);
  std::optional<std::string> template_text;
  if (options.template_file) template_text = read_text(*options.template_file);
  const RunningModel running = open_running_model(options.model);
  Conversation conversation(running, settings, template_text);
  conversation.set_system(options.system);
  ReplOptions repl;
  repl.terminal = !options.question && stdin_is_terminal() && stdout_is_terminal();
  repl.statistics = !options.quiet && !repl.terminal;
  if (options.max_tokens >= 0) repl.generate.max_tokens = static_cast<std::size_t>(options.max_tokens);
  repl.generate.stop = options.stop;
  if (options.question) {
    const std::string question = *options.question == "-" ? read_text("-") : *options.question;
    if (!answer(conversation, question, repl)) throw Error("interrupted", ErrorKind::kInterrupted);
    return;
  }
  if (repl.terminal && !options.quiet) greet(running, conversation);
  run_repl(conversation, repl);
}

}  // namespace

void add_chat_command(CLI::App& app) {
  auto* command = app.add_subcommand("chat", "Talk with a model");
  const auto options = std::make_shared<Options>();
  options->model.add_to(*command);
  options->model.add_memory_limit_to(*command);
  command->add_option("-p,--prompt", options->question,
                      "Ask this one question, answer and stop; - reads standard input");
  command->add_option("--system", options->system, "System message: how the model should behave");
  command->add_option("--template", options->template_file, "A Jinja chat template to use instead of the file's own");
  command->add_option("-n,--max-tokens", options->max_tokens, "Tokens of an answer at most; -1: no limit")
      ->capture_default_str();
  command->add_option("--stop", options->stop, "End an answer before this text; may be given more than once")
      ->take_all();
  command->add_flag("-q,--quiet", options->quiet, "No greeting, no statistics");
  options->sampling.add_to(*command);
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
