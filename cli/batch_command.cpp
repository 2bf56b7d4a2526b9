// hk-run batch: a file of requests in, a file of answers out; and the joining of what several machines answered.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/batch/answer_file.h"
#include "cli/batch/batch_job.h"
#include "cli/batch/merge.h"
#include "cli/batch/request_builder.h"
#include "cli/batch/stop_signals.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "cli/streams.h"
#include "cli/template_source.h"
#include "cli/text.h"
#include "engine/runtime/memory.h"

namespace hk::cli {
namespace {

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  std::string input;
  std::string model_flag;
  AnswerFileOptions out;
  std::string disk_full = "wait";
  bool text = false;
  bool chat = false;
  bool ordered = false;
  bool quiet = false;
  bool errors_ok = false;
  bool no_bos = false;
  bool parse_special = false;
  bool show_special = false;
  std::string system;
  std::optional<std::string> prompt_template;
  std::optional<std::string> continuation_template;
  TemplateOptions chat_template;
  std::string mode = "generate";
  std::string shard = "1/1";
  long long max_tokens = -1;
  std::vector<std::string> stop;
  std::size_t slots = 16;
  std::optional<std::string> memory_limit;
  std::optional<std::string> prefix_cache;
};

// Requests and answers on their way, and the part of it that is taken by their lines: each lives a few times for a
// moment, as text, as parsed JSON and as what is made of it.
constexpr std::uint64_t kOnTheWay = std::uint64_t{16} << 20, kLineParts = 8;
// Larger blocks go back to the system when they are freed. The C library's own limit grows with what is freed, up to
// 32 MiB, and would leave a limit of private memory nothing to rely on.
constexpr int kReturnedBlock = 128 << 10;

/// "@file", or the text itself, in which \n is a line break.
std::optional<FieldTemplate> field_template(const std::optional<std::string>& given, const char* option) {
  if (!given) return std::nullopt;
  if (given->starts_with('@')) return FieldTemplate(read_text(given->substr(1)), option, false);
  return FieldTemplate(*given, option, true);
}

BatchDefaults defaults(const Options& options) {
  BatchDefaults defaults;
  defaults.sampling = options.sampling.settings();
  if (options.max_tokens < -1)
    throw Error(fmt::format("-n: {} is no number of tokens; expected -1 (no limit) or more", options.max_tokens),
                ErrorKind::kUsage);
  if (options.max_tokens >= 0) defaults.max_tokens = static_cast<std::size_t>(options.max_tokens);
  defaults.stop = options.stop;
  defaults.begin_token = !options.no_bos;
  defaults.parse_special = options.parse_special;
  defaults.show_special = options.show_special;
  defaults.score = options.mode == "score";
  defaults.chat = options.chat;
  defaults.system = options.system;
  if (!options.system.empty() && !options.chat)
    throw Error("--system belongs to --chat: a plain prompt has no system message", ErrorKind::kUsage);
  defaults.prompt = field_template(options.prompt_template, "--prompt-template");
  defaults.continuation = field_template(options.continuation_template, "--continuation-template");
  defaults.chat_template = options.chat_template.chosen();
  return defaults;
}

/// Where private memory may go.
struct MemoryShares {
  std::uint64_t scheduler;   ///< sequences, cached prefixes and buffers
  std::uint64_t on_the_way;  ///< requests and answers
};

MemoryShares memory_shares(const Options& options, const RunningModel& running) {
  const std::uint64_t used = engine::process_memory().private_bytes;
  if (options.memory_limit) {
    const std::uint64_t limit = parse_size(*options.memory_limit, "--mem-limit");
    if (limit <= used)
      throw Error(fmt::format("--mem-limit: {} are less than the {} that are in use before the first request",
                              bytes_text(limit), bytes_text(used)),
                  ErrorKind::kUsage);
    const std::uint64_t on_the_way = std::min(kOnTheWay, (limit - used) / 4);
    return {limit - used - on_the_way, on_the_way};
  }
  const auto usable = engine::machine_memory().usable();
  if (!usable) return {std::numeric_limits<std::uint64_t>::max(), kOnTheWay};
  // The weights want to stay in the page cache, which counts as usable; a tenth is for everybody else.
  const std::uint64_t free = *usable - std::min(*usable / 2, running.model->info().weight_bytes);
  return {free / 10 * 9, kOnTheWay};
}

std::uint64_t prefix_cache_limit(const Options& options, std::uint64_t memory, const RunningModel& running) {
  if (options.prefix_cache) return parse_size(*options.prefix_cache, "--prefix-cache");
  // In proportion to the model, as a token of its cache is.
  constexpr std::uint64_t kLeast = std::uint64_t{128} << 20;
  return std::min(memory / 4, std::max(kLeast, running.model->info().weight_bytes / 4));
}

void run(Options& options) {
  // One positional argument is the file of requests, the model then comes by flag; two are model and file.
  if (!options.model_flag.empty()) {
    if (options.input.empty())
      options.input = std::exchange(options.model.file, options.model_flag);
    else if (!options.model.file.empty())
      throw Error("batch: the model is given twice, as argument and with --model", ErrorKind::kUsage);
  }
  if (options.model.file.empty() || options.input.empty())
    throw Error("batch: a model and a file of requests are needed: hk-run batch MODEL IN.jsonl -o OUT.jsonl",
                ErrorKind::kUsage);
  if (options.out.path.empty())
    throw Error("batch: -o is needed: the file that takes the answers, or - for standard output", ErrorKind::kUsage);
  options.out.resume = options.out.resume || options.out.retry_failed;
  options.out.wait_when_full = options.disk_full == "wait";
  auto settings = defaults(options);
  BatchJobOptions job_options;
  job_options.input = options.input;
  job_options.shard = parse_shard(options.shard);
  job_options.ordered = options.ordered;
  job_options.quiet = options.quiet;
  StopSignals::ignore_report();
  ::mallopt(M_MMAP_THRESHOLD, kReturnedBlock);
  const RunningModel running = open_running_model(options.model);
  job_options.scheduler.sequence = running.sequence;
  job_options.scheduler.slots = options.slots;
  const MemoryShares memory = memory_shares(options, running);
  job_options.scheduler.memory_limit = memory.scheduler;
  job_options.bytes_ahead = memory.on_the_way / kLineParts;
  job_options.scheduler.prefix_cache_limit = prefix_cache_limit(options, job_options.scheduler.memory_limit, running);
  settings.sampling = options.sampling.settings(*running.reader);
  RequestBuilder builder(running, std::move(settings));
  // Before the answers: what is wrong with the input must not cost an old output.
  RequestReader reader(options.input, options.text, job_options.shard);
  options.out.inputs = {options.input, options.model.file};
  AnswerFile out(options.out);
  BatchJob job(running, reader, builder, out, std::move(job_options));
  if (!job.run() && !options.errors_ok) throw CLI::RuntimeError(1);
}

void add_options(CLI::App& command, Options& options) {
  options.model.add_to(command);
  command.get_option("file")->required(false);
  command.add_option("input", options.input,
                     "File of requests, a JSON object a line (docs/batch.md); - is standard input");
  command.add_option("-m,--model", options.model_flag, "The model, instead of the first argument");
  command.add_option("-o,--output", options.out.path, "File that takes the answers, a line each; - is standard output");
  command.add_flag("--resume", options.out.resume, "Go on with an output: answer what is not in it yet");
  command.add_flag("--retry-failed", options.out.retry_failed, "--resume, and try again what ended with an error");
  command.add_flag("--force", options.out.force, "Replace an existing output");
  command.add_flag("--errors-ok", options.errors_ok, "Exit code 0 also when some requests ended with an error");
  command.add_option("--disk-full", options.disk_full, "When the disk is full: wait for space, or stop")
      ->check(CLI::IsMember({"wait", "stop"}))
      ->capture_default_str();
  command.add_flag("--ordered", options.ordered, "Answers in the order of the requests, not as they are done");
  command.add_option("--shard", options.shard, "Only part i of n (i/n) of the requests, chosen by their ids")
      ->capture_default_str();
  command.add_flag("--text", options.text, "The input is plain text: a prompt a line");
  command.add_option("--prompt-template", options.prompt_template,
                     "Make prompts of the objects' fields: 'Q: {question}\\nA:'; @FILE reads it from a file");
  command.add_flag("--chat", options.chat, "A prompt is a user's message: put it into the chat template");
  command.add_option("--system", options.system, "System message, with --chat");
  options.chat_template.add_to(command);
  command.add_option("--mode", options.mode, "Continue prompts, or score how likely texts are")
      ->check(CLI::IsMember({"generate", "score"}))
      ->capture_default_str();
  command.add_option("--continuation-template", options.continuation_template,
                     "Score this text, made of the objects' fields, after the prompt");
  command
      .add_option("-n,--max-tokens,--predict,--n-predict", options.max_tokens,
                  "Tokens of an answer at most; -1: until the model ends or the context is full")
      ->capture_default_str();
  command.add_option("--stop", options.stop, "End an answer before this text; may be given more than once")->take_all();
  command.add_flag("--no-special", options.no_bos, "Do not put the vocabulary's begin token before prompts");
  command.add_flag("--parse-special", options.parse_special, "Texts of special tokens in prompts become these tokens");
  command.add_flag("--show-special", options.show_special, "Write the texts of special tokens that the model makes");
  command.add_option("--slots", options.slots, "Sequences that are computed at the same time")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--mem-limit", options.memory_limit,
                     "Private memory at most, such as 8G; default: what the machine has left beside the weights");
  command.add_option("--prefix-cache", options.prefix_cache,
                     "Of that, for beginnings that later prompts may share; 0: none");
  command.add_flag("-q,--quiet", options.quiet, "No progress, no statistics");
  options.sampling.add_to(command);
}

void add_merge_command(CLI::App& batch) {
  auto* command = batch.add_subcommand("merge", "Join the answers of all shards into one file");
  const auto options = std::make_shared<MergeOptions>();
  command->add_option("out", options->out, "File to write")->required();
  command->add_option("parts", options->parts, "Files of answers")->required();
  command->add_option("--input", options->input, "The file of requests: its order is kept, and nothing may be missing");
  command->add_flag("--text", options->text, "The input is plain text: a prompt a line");
  command->add_flag("--partial", options->partial, "Missing answers are no error");
  command->add_flag("--force", options->force, "Replace an existing file");
  command->callback([options] { merge_answers(*options); });
}

}  // namespace

void add_batch_command(CLI::App& app) {
  auto* command = app.add_subcommand("batch", "Answer a file of requests");
  const auto options = std::make_shared<Options>();
  add_options(*command, *options);
  add_merge_command(*command);
  command->callback([command, options] {
    if (command->get_subcommands().empty()) run(*options);
  });
}

}  // namespace hk::cli
