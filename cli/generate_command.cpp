// hk-run generate: continues a text. The answer goes to stdout, one line of statistics to stderr.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json_fields.h"
#include "cli/model_options.h"
#include "cli/output_check.h"
#include "cli/profile/profile_options.h"
#include "cli/sampling_options.h"
#include "cli/streams.h"
#include "cli/text_prompt.h"
#include "cli/token_scores.h"

namespace hk::cli {
namespace {

struct Options {
  ModelOptions model;
  SamplingOptions sampling;
  ProfileOptions profile;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  long long max_tokens = -1;
  std::vector<std::string> stop;
  bool no_bos = false;
  bool parse_special = false;
  bool show_special = false;
  bool echo = false;
  bool json = false;
  std::optional<std::size_t> logprobs;
};

/// The whole answer as one JSON object, a line.
std::string answer_json(const engine::GenerateResult& result, const std::string& echoed, const Options& options,
                        const RunningModel& running, const engine::Sampler& sampler) {
  const auto& statistics = result.statistics;
  Json out{{"text", echoed + result.text}, {"finish_reason", engine::finish_reason_name(result.reason)}};
  if (!result.stop.empty()) out["stop"] = result.stop;
  if (options.logprobs) {
    out["tokens"] =
        token_scores_json(result.scores, *running.tokenizer, {.text = "text", .alternatives = "top", .bytes = true});
  } else {
    out["tokens"] = Json(result.tokens);
  }
  out["seed"] = sampler.seed();
  out["usage"] = {{"prompt_tokens", statistics.prompt_tokens}, {"completion_tokens", statistics.generated_tokens}};
  return json_text(out) + "\n";
}

std::string prompt_text(const Options& options) {
  if (options.prompt && options.prompt_file)
    throw Error("generate: -p and -f both give a prompt; one of them is enough", ErrorKind::kUsage);
  if (options.prompt_file) return read_text(*options.prompt_file);
  if (!options.prompt)
    throw Error("generate: a prompt is needed: -p TEXT, -f FILE, or -p - for standard input", ErrorKind::kUsage);
  return *options.prompt == "-" ? read_text("-") : *options.prompt;
}

/// What --profile hears: the prompt, and from its last token on what is generated.
class ProfiledRun {
 public:
  explicit ProfiledRun(const ProfileOptions& options) : options_(options) {
    if (options_.wanted()) parts_.emplace_back("prompt", options_.keep_events());
  }
  void prompt_done() {
    if (parts_.size() != 1) return;
    parts_[0].profile.listen(false);
    parts_.emplace_back("generated", options_.keep_events());
  }
  void report(const engine::GenerateStatistics& statistics, const RunningModel& running) {
    if (parts_.empty()) return;
    parts_.back().profile.listen(false);
    parts_[0].tokens = statistics.prefilled_tokens;
    parts_[0].seconds = statistics.prefill_seconds;
    if (parts_.size() > 1) {
      parts_[1].tokens = statistics.decoded_tokens;
      parts_[1].seconds = statistics.decode_seconds;
    }
    if (options_.table) {
      engine::ThreadPool& pool = *running.threads;
      pool.use(pool.most_threads());
      engine::RooflineProbe probe(*running.kernels, pool);
      pool.use(pool.shares().prefill);
      parts_[0].peaks = measure_peaks(probe);
      pool.use(pool.shares().decode);
      if (parts_.size() > 1) parts_[1].peaks = measure_peaks(probe);
    }
    options_.report(parts_);
  }

 private:
  const ProfileOptions& options_;
  ProfiledParts parts_;
};

void run(const Options& options) {
  options.sampling.settings();  // wrong flags are told before the model is opened
  if (options.max_tokens < -1)
    throw Error(fmt::format("-n: {} is no number of tokens; expected -1 (no limit) or more", options.max_tokens),
                ErrorKind::kUsage);
  if (options.logprobs && !options.json) throw Error("--logprobs is told in JSON: it needs --json", ErrorKind::kUsage);
  const std::string text = prompt_text(options);
  const InterruptGuard guard;
  const RunningModel running = open_running_model(options.model);
  if (options.profile.json) refuse_inputs(*options.profile.json, *running.reader);
  auto sampler = running.make_sampler(options.sampling.settings(*running.reader));
  engine::Session session(*running.model, running.sequence);
  PrefillProgress progress;
  engine::GenerateOptions generate;
  if (options.max_tokens >= 0) generate.max_tokens = static_cast<std::size_t>(options.max_tokens);
  generate.stop = options.stop;
  generate.show_special = options.show_special;
  generate.cancelled = [] { return InterruptGuard::interrupted(); };
  ProfiledRun profiled(options.profile);
  generate.on_prefill = [&](std::size_t done, std::size_t total) {
    progress.update(done, total);
    if (done == total) profiled.prompt_done();
  };
  generate.on_text = [&](std::string_view piece) {
    progress.clear();
    if (!options.json) write_answer(piece);
  };
  generate.logprobs = options.logprobs;
  if (options.echo && !options.json) write_answer(text);
  const auto result =
      engine::generate(session, *running.tokenizer, sampler,
                       encode_prompt(*running.tokenizer, text, options.parse_special, !options.no_bos), generate);
  progress.clear();
  if (options.json) {
    write_answer(answer_json(result, options.echo ? text : "", options, running, sampler));
  } else if (stdout_is_terminal() && !result.text.ends_with('\n')) {
    write_answer("\n");
  }
  write_note(running.statistics_line(result, sampler));
  profiled.report(result.statistics, running);
  if (result.reason == engine::FinishReason::kCancelled) InterruptGuard::check();
}

}  // namespace

void add_generate_command(CLI::App& app) {
  auto* command = app.add_subcommand("generate", "Continue a text");
  const auto options = std::make_shared<Options>();
  options->model.add_to(*command);
  options->model.add_memory_limit_to(*command);
  command->add_option("-p,--prompt", options->prompt, "The text to continue; - reads standard input");
  command->add_option("-f,--file", options->prompt_file, "A file with the text to continue; - is standard input");
  command
      ->add_option("-n,--max-tokens,--predict,--n-predict", options->max_tokens,
                   "Tokens to generate at most; -1: until the model ends or the context is full")
      ->capture_default_str();
  command->add_option("--stop", options->stop, "End before this text appears; may be given more than once")->take_all();
  command->add_flag("--echo", options->echo, "Write the prompt before the answer");
  command->add_flag("--no-special", options->no_bos, "Do not put the vocabulary's begin token before the prompt");
  command->add_flag("--parse-special", options->parse_special,
                    "Texts of special tokens in the prompt become these tokens");
  command->add_flag("--show-special", options->show_special, "Write the texts of special tokens that the model makes");
  options->profile.add_to(*command);
  command->add_flag("--json", options->json, "Write one JSON object: text, token ids, why it ended, seed, usage");
  command
      ->add_option("--logprobs", options->logprobs,
                   "With --json: the log-probability of each token, and of the N most likely in its place")
      ->type_name("N");
  options->sampling.add_to(*command);
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
