// From options to a model that can generate.
#include "cli/model_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "cli/text.h"
#include "engine/container/vocabulary.h"
#include "engine/runtime/memory.h"
#include "engine/runtime/topology.h"
#include "models/open.h"

namespace hk::cli {
namespace {

// For a file that does not say what it was trained with.
constexpr std::size_t kContextWhenUnknown = 4096;
// Positions are numbered in 32 bits.
constexpr std::size_t kMostContext = 0x7fffffff;

}  // namespace

void ModelOptions::add_to(CLI::App& command) {
  constexpr auto kGroup = "Model";
  command.add_option("file", file, "A .hk or .gguf file (any shard or split of a set)")->required();
  command.add_option("-c,--context", context, "Positions of the context; default: what the model was trained with")
      ->group(kGroup);
  command.add_option("-t,--threads", threads, "Threads; default: physical fast cores within affinity and CPU quota")
      ->group(kGroup);
  command
      .add_option("--tb,--threads-batch", threads_batch, "Threads that read prompts; default: as many as generate (-t)")
      ->group(kGroup);
  load.add_to(command);
  command.add_flag("--memory-plan", show_plan, "Say on stderr what memory the model will take")->group(kGroup);
  command.add_option("--kv", kv, kv_help())->capture_default_str()->group(kGroup);
}

void ModelOptions::add_memory_limit_to(CLI::App& command) {
  command
      .add_option("--mem-limit", memory_limit,
                  "Private memory at most, such as 8G; a default context is cut to fit; default: what the machine has")
      ->group("Model");
}

engine::MemoryPlan plan_model_memory(const engine::Model& model, const engine::ModelReader& reader,
                                     const MemoryQuestion& question) {
  const auto& sequence = question.sequence;
  const std::size_t sequences = std::max<std::size_t>(1, question.sequences);
  engine::MemoryNeeds needs;
  if (question.load)
    (question.load == engine::LoadMode::kMap ? needs.mapped_weights : needs.private_weights) = reader.mapped_bytes();
  needs.scratch = model.expected_scratch_bytes(sequence.context_length, question.logit_rows);
  needs.state = [&model, sequence, sequences](std::size_t positions) {
    const std::uint64_t one = model.state_bytes(sequence, positions);
    const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    return one > most / sequences ? most : one * sequences;
  };
  engine::MemoryLimits limits;
  limits.private_now = engine::process_memory().private_bytes;
  if (question.limit) limits.asked = parse_size(*question.limit, "--mem-limit");
  limits.machine = engine::machine_memory();
  auto plan = engine::plan_memory(needs, limits, sequence.context_length, question.asked);
  for (const std::string& remark : plan.remarks()) note(remark);
  return plan;
}

const kernels::KernelTable& chosen_kernels() {
  const char* forced = std::getenv("HK_KERNELS");
  const char* why = "";
  const auto* table = kernels::select_level(forced == nullptr ? "" : forced, &why);
  if (table == nullptr)
    throw Error(fmt::format("HK_KERNELS={}: {}", forced == nullptr ? "" : forced, why), ErrorKind::kUsage);
  return *table;
}

RunningModel open_running_model(const ModelOptions& options) {
  RunningModel running;
  running.sequence.kv = parse_kv(options.kv);
  if (options.context && *options.context == 0)
    throw Error("--context: a context of 0 positions holds nothing; expected at least 1", ErrorKind::kUsage);
  if (options.context.value_or(0) > kMostContext)
    throw Error(fmt::format("--context: {} positions are more than any model has; at most {} are taken",
                            *options.context, kMostContext),
                ErrorKind::kUsage);
  running.kernels = &chosen_kernels();
  const engine::NumaPlan numa = options.load.place();
  int threads = 0;
  if (options.threads) {
    threads = *options.threads;
    running.threads_why = "as asked";
  } else {
    auto choice = engine::default_threads(engine::read_topology());
    threads = choice.threads;
    running.threads_why = std::move(choice.why);
  }
  const int threads_batch = options.threads_batch.value_or(threads);
  if (threads < 1 || threads_batch < 1)
    throw Error(fmt::format("the number of threads must be from 1 to 256, not {}", std::min(threads, threads_batch)),
                ErrorKind::kUsage);
  running.threads = std::make_unique<engine::ThreadPool>(std::max(threads, threads_batch),
                                                         [numa](int worker) { engine::place_worker(numa, worker); });
  running.threads->set_shares({threads, threads_batch});
  if (threads_batch != threads) running.threads_why += fmt::format(", {} for prompts", threads_batch);
  running.reader = engine::open_model(options.file);
  for (const auto& remark : running.reader->remarks()) note(remark);
  running.tokenizer = engine::make_tokenizer(*running.reader);
  for (const auto& remark : running.tokenizer->remarks()) note(remark);
  running.model = models::open(running.reader, *running.threads, *running.kernels);
  const std::size_t trained = running.model->info().context_length;
  running.sequence.context_length = options.context ? *options.context : trained != 0 ? trained : kContextWhenUnknown;
  if (trained != 0 && running.sequence.context_length > trained)
    note(fmt::format("the context of {} positions is longer than the {} that the model was trained with",
                     running.sequence.context_length, trained));
  const auto plan = plan_model_memory(
      *running.model, *running.reader,
      {running.sequence, 1, 1, options.context.has_value(), options.load.mode(), options.memory_limit});
  running.sequence.context_length = plan.context;
  if (options.show_plan) note(plan.text());
  options.load.bring_weights(*running.reader, *running.threads);
  return running;
}

engine::Sampler RunningModel::make_sampler(const engine::SamplerSettings& settings) const {
  return {settings, model->info().vocab_size, tokenizer->eog_ids(),
          [&vocabulary = *tokenizer](engine::TokenId id) { return vocabulary.piece(id); }};
}

std::string RunningModel::statistics_line(const engine::GenerateResult& result, const engine::Sampler& sampler) const {
  const auto& s = result.statistics;
  const auto memory = engine::process_memory();
  return fmt::format(
      "prompt {} tokens ({} cached) {:.1f} tok/s, generated {} tokens {:.1f} tok/s, finish: {}, {} private, {} mapped, "
      "{} {} ({}), {}, seed {}",
      s.prompt_tokens, s.cached_tokens, s.prefill_rate(), s.generated_tokens, s.decode_rate(),
      engine::finish_reason_name(result.reason), bytes_text(memory.private_bytes), bytes_text(memory.mapped_bytes),
      threads->shares().decode, threads->shares().decode == 1 ? "thread" : "threads", threads_why, kernels->level,
      sampler.seed());
}

}  // namespace hk::cli
