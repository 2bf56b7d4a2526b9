// hk-run convert: from GGUF (one file or splits) or .hk to .hk, as it is or with weights stored as another type.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "engine/container/convert.h"
#include "engine/container/model_reader.h"
#include "engine/runtime/thread_pool.h"
#include "engine/runtime/topology.h"

namespace hk::cli {
namespace {

struct Options {
  std::string input;
  std::string output;
  std::string type;
  std::string shard_size;
  std::uint32_t alignment = 128;
  int threads = 0;
};

/// Names that say another format would only mislead whoever opens the file later.
void check_output_name(const std::string& output) {
  for (const auto* extension : {".gguf", ".safetensors", ".json"})
    if (output.ends_with(extension))
      throw Error(fmt::format("{} ends in {}, but what is written is a .hk file", output, extension),
                  ErrorKind::kUsage);
}

void run(const Options& options) {
  check_output_name(options.output);
  engine::ConvertOptions convert;
  convert.alignment = options.alignment;
  if (!options.shard_size.empty()) {
    convert.shard_bytes = parse_size(options.shard_size, "--shard-size");
    if (convert.shard_bytes == 0) throw Error("--shard-size is 0; a positive size was expected", ErrorKind::kUsage);
  }
  if (!options.type.empty()) convert.type = engine::parse_target_type(options.type);

  const auto model = engine::open_model(options.input);
  for (const auto& remark : model->remarks()) fmt::print(stderr, "note: {}\n", printable(remark));

  std::unique_ptr<engine::ThreadPool> pool;
  if (convert.type) {
    const int threads =
        options.threads > 0 ? options.threads : engine::default_threads(engine::read_topology()).threads;
    pool = std::make_unique<engine::ThreadPool>(threads);
    convert.parallel = [&](std::size_t count, const std::function<void(std::size_t)>& work) {
      pool->run(count, [&](std::size_t chunk, int) { work(chunk); });
    };
  }
  const InterruptGuard guard;
  Progress progress("converting", 0);
  convert.progress = [&](std::uint64_t done, std::uint64_t total) {
    InterruptGuard::check();
    progress.update(done, total);
  };
  const auto result = engine::convert_model(*model, options.output, convert);
  progress.clear();
  const double seconds = progress.seconds();
  for (const auto& note : result.notes) fmt::print(stderr, "note: {}\n", printable(note));
  const auto written = result.files.size() == 1
                           ? result.files[0]
                           : fmt::format("{} and {} more", result.files[0], result.files.size() - 1);
  const auto changed = convert.type ? fmt::format(", {} stored as {}", result.reencoded, options.type) : std::string();
  fmt::print(stderr, "{}: {} tensors{}, {} in {:.2f} s, {}\n", printable(written), result.tensors, changed,
             bytes_text(result.bytes), seconds, rate_text(static_cast<double>(result.bytes) / std::max(seconds, 1e-6)));
}

}  // namespace

void add_convert_command(CLI::App& app) {
  auto* command = app.add_subcommand("convert", "Convert a GGUF model (or rewrite a .hk one) to .hk");
  const auto options = std::make_shared<Options>();
  command->add_option("input", options->input, "A .gguf file (any split of a set) or a .hk file")->required();
  command->add_option("output", options->output, "The .hk file to write; appears when it is complete")->required();
  command->add_option(
      "--type", options->type,
      "Store weight matrices as this type (q8_0, q4_0, q4_k, f16, ...); norms and other small tensors keep theirs");
  command->add_option("--alignment", options->alignment, "Bytes that payloads are aligned to: 128, 4096, 16384")
      ->check(CLI::Range(1u, 65535u))
      ->capture_default_str();
  command->add_option("--shard-size", options->shard_size,
                      "Split the output into files of at most this many bytes (4G, 512M)");
  command->add_option("--threads", options->threads, "Threads for --type; 0: one for each fast core")
      ->check(CLI::Range(0, 4096));
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
