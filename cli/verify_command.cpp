// hk-run verify: checks everything about a model file that can be checked, and lists what is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/family_remarks.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "engine/container/model_reader.h"
#include "engine/container/validate.h"

namespace hk::cli {
namespace {

struct Options {
  std::string file;
  bool quick = false;
};

void run(const Options& options) {
  const InterruptGuard guard;
  const std::shared_ptr<engine::ModelReader> reader = engine::open_model(options.file);
  Progress progress("verifying", 0);
  const auto findings =
      engine::validate(*reader, {.payloads = !options.quick, .progress = [&](std::uint64_t done, std::uint64_t total) {
                                   InterruptGuard::check();
                                   progress.update(done, total);
                                 }});
  progress.clear();
  for (const auto& finding : findings)
    fmt::print("{}: {}\n", finding.wrong ? "wrong" : "note", printable(finding.text));
  for (const auto& remark : family_remarks(reader)) fmt::print("note: {}\n", printable(remark));
  const auto faults = std::count_if(findings.begin(), findings.end(), [](const auto& f) { return f.wrong; });
  const auto scope = fmt::format("{} tensors, {} metadata keys, {}", reader->tensors().size(),
                                 reader->metadata().entries().size(), bytes_text(reader->mapped_bytes()));
  if (faults == 0) {
    fmt::print("{}: nothing wrong ({}{})\n", printable(options.file), scope,
               options.quick ? ", payloads not read" : "");
    return;
  }
  fmt::print("{}: {} {} found ({})\n", printable(options.file), faults, faults == 1 ? "fault" : "faults", scope);
  throw CLI::RuntimeError(1);
}

}  // namespace

void add_verify_command(CLI::App& app) {
  auto* command = app.add_subcommand("verify", "Check a model file: tables, tensors, payloads, metadata, lineage");
  const auto options = std::make_shared<Options>();
  command->add_option("file", options->file, "A .hk file, any shard or the index of a set, or a .gguf file")
      ->required();
  command->add_flag("--quick", options->quick, "Do not read the payloads");
  command->callback([options] { run(*options); });
}

}  // namespace hk::cli
