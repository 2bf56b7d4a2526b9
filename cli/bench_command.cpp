// hk-run bench: how fast models run here, and how fast they could.
//
// Options and names of fields follow what other tools for the same purpose use, so that results can be compared. The
// machine's limits are measured in the same run, right before each repetition.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/bench/measure.h"
#include "cli/bench/report.h"
#include "cli/bench/settings.h"
#include "cli/bench/table.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/kv_option.h"
#include "cli/model_options.h"
#include "cli/output_check.h"
#include "cli/streams.h"
#include "cli/text.h"
#include "engine/runtime/topology.h"

namespace hk::cli {
namespace {

constexpr std::size_t kUsualPrompt = 512, kUsualGenerate = 128, kUsualDepth = 4096;
constexpr std::size_t kBatchPrompt = 128, kBatchGenerate = 64;

struct Options {
  std::vector<std::string> files;
  std::optional<std::string> prompts, generates, depths, chunks, threads, threads_batch, batches;
  std::vector<std::string> pairs;
  std::optional<std::string> memory_limit;
  LoadOptions load;
  ProfileOptions profile;
  std::string kv{kUsualKv}, kernels, format = "md";
  std::size_t repetitions = 5;
  double delay = 0;
  bool no_warmup = false;
};

std::vector<std::size_t> counts(const std::optional<std::string>& text, const char* option,
                                std::vector<std::size_t> usual) {
  return text ? parse_counts(*text, option) : usual;
}

const kernels::KernelTable& level(const std::string& name) {
  const char* why = "";
  const auto* table = kernels::select_level(name, &why);
  if (table == nullptr) throw Error(fmt::format("--kernels {}: {}", name, why), ErrorKind::kUsage);
  return *table;
}

std::vector<engine::SpeedTest> speed_tests(const Options& options, std::size_t context) {
  // Unasked-for tests fit into the model's context; those that were asked for run as they are.
  const std::size_t usual_prompt = std::min(kUsualPrompt, context), usual_generate = std::min(kUsualGenerate, context);
  const bool alone = options.pairs.empty();
  const auto prompts = counts(options.prompts, "-p", alone ? std::vector{usual_prompt} : std::vector<std::size_t>{});
  const auto generates =
      counts(options.generates, "-n", alone ? std::vector{usual_generate} : std::vector<std::size_t>{});
  std::vector<engine::SpeedTest> tests;
  const auto add = [&](std::size_t prompt, std::size_t generate, std::size_t depth) {
    if (prompt + generate != 0) tests.push_back({prompt, generate, depth, 1, 0});
  };
  const std::vector<std::size_t> depths = counts(options.depths, "-d", {0});
  for (const std::size_t depth : depths) {
    for (const std::size_t prompt : prompts) add(prompt, 0, depth);
    for (const std::size_t generate : generates) add(0, generate, depth);
    for (const std::string& pair : options.pairs) {
      const auto both = parse_counts(pair, "-pg");
      if (both.size() != 2)
        throw Error(fmt::format("-pg: '{}' is no pair; expected PROMPT,GENERATE", pair), ErrorKind::kUsage);
      add(both[0], both[1], depth);
    }
  }
  if (!options.depths) {
    for (const std::size_t generate : generates) {
      if (context <= generate) continue;
      const std::size_t depth = std::min(kUsualDepth, context - generate);
      add(0, generate, depth);
    }
  }
  if (tests.empty()) throw Error("bench: nothing to measure: -p, -n and -pg are all 0", ErrorKind::kUsage);
  return tests;
}

std::vector<engine::SpeedTest> batch_tests(const Options& options, std::size_t context) {
  std::vector<engine::SpeedTest> tests;
  for (const std::size_t depth : counts(options.depths, "-d", {0})) {
    for (const std::size_t prompt : counts(options.prompts, "-p", {std::min(kBatchPrompt, context / 2)})) {
      for (const std::size_t generate : counts(options.generates, "-n", {std::min(kBatchGenerate, context / 2)})) {
        for (const std::size_t batch : counts(options.batches, "--batch", {})) {
          if (batch == 0 || batch > 1024)
            throw Error(fmt::format("--batch: {} sequences; expected 1 to 1024", batch), ErrorKind::kUsage);
          if (prompt + generate != 0) tests.push_back({prompt, generate, depth, batch, 0});
        }
      }
    }
  }
  if (!options.pairs.empty()) throw Error("bench: --batch takes -p and -n, not -pg", ErrorKind::kUsage);
  if (tests.empty()) throw Error("bench: nothing to measure: -p and -n are both 0", ErrorKind::kUsage);
  return tests;
}

/// Every file with every combination of the other settings, files changing fastest: neighbours are what one compares.
std::vector<BenchSetting> settings(const Options& options, int usual_threads) {
  std::vector<BenchSetting> all;
  const auto check_threads = [](std::size_t n, const char* option) {
    if (n < 1 || n > 256) throw Error(fmt::format("{}: {} threads; expected 1 to 256", option, n), ErrorKind::kUsage);
    return static_cast<int>(n);
  };
  std::vector<const kernels::KernelTable*> levels;
  if (options.kernels.empty()) levels.push_back(&chosen_kernels());
  if (!options.kernels.empty()) {
    for (const std::string& name : split_list(options.kernels, "--kernels")) levels.push_back(&level(name));
  }
  for (const auto* table : levels) {
    for (const std::string& kv : split_list(options.kv, "--kv")) {
      for (const std::size_t chunk : counts(options.chunks, "-b", {512})) {
        if (chunk == 0) throw Error("-b: forward calls of 0 tokens never end", ErrorKind::kUsage);
        for (const std::size_t threads : counts(options.threads, "-t", {static_cast<std::size_t>(usual_threads)})) {
          for (const std::size_t batch : counts(options.threads_batch, "-tb", {threads})) {
            for (std::size_t file = 0; file < options.files.size(); ++file)
              all.push_back(
                  {file, check_threads(threads, "-t"), check_threads(batch, "-tb"), parse_kv(kv), chunk, table});
          }
        }
      }
    }
  }
  return all;
}

template <typename Get>
bool differ(const std::vector<BenchSetting>& all, const Get& get) {
  return std::any_of(all.begin(), all.end(), [&](const BenchSetting& s) { return get(s) != get(all[0]); });
}

/// One line on a terminal, redrawn in place.
void show_progress(const std::string& text) {
  if (!stderr_is_terminal()) return;
  write_aside(fmt::format("\r\x1b[K{}", text));
}

void print_machine(const engine::Topology& topology, const std::string& why, BenchRunner& runner, int threads) {
  const BenchPeaks peaks = runner.peaks(threads);
  write_note(fmt::format("{}; {} threads ({}); now {:.1f} GB/s, {:.0f} GMAC/s int8, {:.0f} GMAC/s f32",
                         topology.cpu_model.empty() ? "unknown CPU" : printable(topology.cpu_model), threads, why,
                         peaks.read, peaks.int8_dot, peaks.f32_fma));
}

void run(const Options& options) {
  const BenchFormat format = parse_bench_format(options.format);
  const engine::NumaPlan numa = options.load.place();
  const engine::Topology topology = engine::read_topology();
  const engine::ThreadChoice choice = engine::default_threads(topology);
  const std::vector<BenchSetting> all = settings(options, choice.threads);
  int most_threads = 1;
  for (const BenchSetting& setting : all)
    most_threads = std::max({most_threads, setting.threads, setting.threads_batch});
  const InterruptGuard guard;
  engine::ThreadPool pool(most_threads, [&numa](int worker) { engine::place_worker(numa, worker); });
  BenchRunner::Options how;
  how.repetitions = options.repetitions;
  how.warm_up = !options.no_warmup;
  how.delay_seconds = options.delay;
  how.cancelled = [] { return InterruptGuard::interrupted(); };
  how.progress = show_progress;
  how.load = options.load;
  how.memory_limit = options.memory_limit;
  BenchRunner runner(options.files, pool, *all[0].kernels, how);

  std::size_t context = kUsualDepth + kUsualPrompt + kUsualGenerate;
  for (const BenchFile& file : runner.files()) {
    if (file.info.context_length != 0) context = std::min(context, file.info.context_length);
  }
  const bool batch = options.batches.has_value();
  if (options.profile.json) refuse_inputs(*options.profile.json, options.files);
  const auto tests = batch ? batch_tests(options, context) : speed_tests(options, context);
  std::size_t positions = 0;
  std::size_t sequences = 1;
  for (const auto& test : tests) {
    positions = std::max(positions, test.positions());
    sequences = std::max(sequences, test.sequences);
  }
  runner.set_context(positions, sequences);

  BenchContext about;
  about.cpu = topology.cpu_model;
  about.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  about.repetitions = options.repetitions;
  about.many_kernels = differ(all, [](const BenchSetting& s) { return s.kernels; });
  about.many_kv = differ(all, [](const BenchSetting& s) { return s.kv; });
  about.many_chunks = differ(all, [](const BenchSetting& s) { return s.chunk; });
  print_machine(topology, options.threads ? "as asked" : choice.why, runner, most_threads);

  BenchTable table(format, batch ? "batched_bench" : "test");
  std::vector<std::string> verdicts, warnings;
  ProfiledParts profiled;
  engine::ProcessMemory memory;
  std::vector<double> first_token(runner.files().size(), 0);
  for (const auto& test : tests) {
    const auto results = runner.run(test, all);
    for (const BenchResult& result : results) {
      const BenchFile& file = runner.files()[result.setting.file];
      const BenchResult* reference = &result == &results[0] ? nullptr : &results[0];
      table.add(batch ? batch_row(about, file, result) : speed_row(about, file, result, reference));
      if (reference != nullptr)
        verdicts.push_back(verdict(*reference, result,
                                   setting_name(about, runner.files()[reference->setting.file], reference->setting),
                                   setting_name(about, file, result.setting)));
    }
    for (const std::string& warning : results[0].disturbance.warnings())
      warnings.push_back(fmt::format("{}: {}", test_name(test), warning));
    memory = results[0].memory;
    for (std::size_t i = 0; options.profile.wanted() && i < all.size(); ++i) {
      std::string name = test_name(test);
      if (all.size() > 1) name += ", " + setting_name(about, runner.files()[all[i].file], all[i]);
      runner.profile(test, all[i], profiled.emplace_back(std::move(name), options.profile.keep_events()));
    }
  }
  table.finish();
  table.remark("");
  for (const std::string& line : verdicts) {
    if (format == BenchFormat::kMarkdown)
      table.remark(line);
    else
      write_note(line);
  }
  for (const BenchFile& file : runner.files())
    table.remark(fmt::format("{}: loaded in {:.0f} ms", printable(file_name(file.path)), 1e3 * file.load_seconds));
  table.remark(
      fmt::format("memory: {} private, {} mapped", bytes_text(memory.private_bytes), bytes_text(memory.mapped_bytes)));
  for (const std::string& line : warnings) write_note(fmt::format("hk-run: doubtful: {}", line));
  if (options.profile.wanted()) options.profile.report(profiled);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  auto* command =
      app.add_subcommand("bench", "Measure how fast models run, and how close that is to the machine's limits");
  const auto options = std::make_shared<Options>();
  command->add_option("files,-m,--model", options->files, "Model files; several are compared")->required();
  command->add_option("-p,--n-prompt", options->prompts, "Tokens of a prompt; lists and ranges; default: 512");
  command->add_option("-n,--n-gen", options->generates, "Tokens to generate; default: 128");
  command->add_option("--pg", options->pairs, "PROMPT,GENERATE: both, timed together; may be given more than once")
      ->take_all();
  command->add_option("-d,--n-depth", options->depths,
                      "Positions in the context before; default: 0, and for generating 4096, too");
  command->add_option("--batch", options->batches,
                      "So many sequences side by side; gives the table of throughputs instead");
  command->add_option("-b,--batch-size", options->chunks, "Prompt tokens of one forward call; default: 512");
  command->add_option("-t,--threads", options->threads, "Threads; default: as for every other command");
  command->add_option("--tb,--threads-batch", options->threads_batch, "Threads for prompts; default: as -t");
  command->add_option("--kv", options->kv, kv_help() + ", or several: f16,q8_0")->capture_default_str();
  command->add_option("--kernels", options->kernels, "Kernel levels; default: the one in use");
  command->add_option("-r,--repetitions", options->repetitions, "Repetitions of each test")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--delay", options->delay, "Seconds of rest before each repetition")
      ->check(CLI::Range(0.0, 3600.0));
  command->add_option("--mem-limit", options->memory_limit, "Private memory at most, such as 8G");
  options->load.add_to(*command);
  options->profile.add_to(*command);
  command->add_flag("--no-warmup", options->no_warmup, "Do not run each test once before it is timed");
  command->add_option("-o,--output", options->format, "md, csv, json, jsonl or sql")->capture_default_str();
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
