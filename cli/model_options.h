// The options of every command that runs a model (file, context, threads, cache type), and the running model they lead
// to.
//
// Layer: cli.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "cli/kv_option.h"
#include "cli/load_options.h"
#include "engine/container/model_reader.h"
#include "engine/generate/generator.h"
#include "engine/generate/memory_plan.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/kernels.h"
#include "tokenizer/tokenizer.h"

namespace CLI {
class App;
}

namespace hk::cli {

struct ModelOptions {
  std::string file;
  std::optional<std::size_t> context;
  std::optional<int> threads;
  std::optional<int> threads_batch;
  std::optional<std::string> memory_limit;
  bool show_plan = false;
  LoadOptions load;
  std::string kv{kUsualKv};

  void add_to(CLI::App& command);
  /// --mem-limit, for commands that run one sequence; others have their own.
  void add_memory_limit_to(CLI::App& command);
};

/// Everything that is needed to generate. Members in the order in which they depend on each other.
struct RunningModel {
  const kernels::KernelTable* kernels = nullptr;
  std::string threads_why;
  std::shared_ptr<engine::ModelReader> reader;
  std::unique_ptr<engine::ThreadPool> threads;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<engine::Model> model;
  engine::SequenceOptions sequence{};

  engine::Sampler make_sampler(const engine::SamplerSettings& settings) const;
  /// "prompt ... tok/s, generated ... tok/s, ..., private and mapped MiB, threads and why, level, seed": one line
  /// without its end.
  std::string statistics_line(const engine::GenerateResult& result, const engine::Sampler& sampler) const;
};

/// What a command is going to do with a model, as far as memory is concerned.
struct MemoryQuestion {
  engine::SequenceOptions sequence{};
  std::size_t sequences = 1;
  std::size_t logit_rows = 1;                                     ///< of one forward call
  bool asked = false;                                             ///< the context is what somebody wants and is not cut
  std::optional<engine::LoadMode> load = engine::LoadMode::kMap;  ///< absent: the weights are in memory already
  std::optional<std::string> limit;                               ///< --mem-limit
};
/// The memory that this will take together with the model, before any is taken; remarks go to stderr. Throws hk::Error
/// (kResource) when it does not fit.
engine::MemoryPlan plan_model_memory(const engine::Model& model, const engine::ModelReader& reader,
                                     const MemoryQuestion& question);
/// The level that HK_KERNELS names, or the best one. Throws hk::Error (usage) when it names one that cannot run here.
const kernels::KernelTable& chosen_kernels();
/// Opens the file, picks threads and kernels; says remarks about the file on stderr. Throws hk::Error.
RunningModel open_running_model(const ModelOptions& options);

}  // namespace hk::cli
