// hk-run appendix: the lineage records behind a .hk model: list, append, roll back, verify.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/text.h"
#include "engine/container/appendix.h"
#include "engine/container/hk_reader.h"
#include "engine/container/mapped_file.h"

namespace hk::cli {
namespace {

using engine::Appendix;
using engine::AppendixRecord;
using engine::AppendixType;
using engine::HkReader;
using engine::Link;

struct Options {
  std::string file;
  std::string type;
  std::string data;
  engine::NewRecord record;
  std::optional<std::uint32_t> generation;
  std::optional<std::uint64_t> timestamp;
  bool compressed = false;
  bool inactive = false;
  std::uint32_t roll_back_to = 0;
};

/// Records live in one file; of a set it is the member named, and shard 0 for the index.
struct Opened {
  explicit Opened(const std::string& path) : reader(path, HkReader::Members::kThisFile) {
    appendix = engine::read_appendix(reader.files()[0].bytes(), reader.header().appendix_offset);
  }
  HkReader reader;
  Appendix appendix;
};

std::string time_text(std::uint64_t timestamp) {
  constexpr std::uint64_t kEndOfYear9999 = 253402300799;
  if (timestamp > kEndOfYear9999) return fmt::format("{}", timestamp);  // no time in seconds
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(timestamp)));
}

std::string flag_text(std::uint8_t flags) {
  std::string text = (flags & engine::kAppendixActive) != 0 ? "active" : "inactive";
  if ((flags & engine::kAppendixCompressed) != 0) text += ", compressed";
  return text;
}

std::string link_text(Link link) {
  switch (link) {
    case Link::kFirst:
      return "first";
    case Link::kValid:
      return "valid";
    case Link::kOld:
      return "valid (older form)";
    case Link::kBroken:
      return "BROKEN";
  }
  return "";
}

void list(const Options& options) {
  const Opened opened(options.file);
  const auto links = engine::check_lineage(opened.appendix);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto& record = opened.appendix.records[i];
    const auto type = engine::appendix_type_name(record.type);
    std::cout << fmt::format("{}: {} {:?}, generation {}, {}, {}\n", i + 1,
                             type == "unknown type"
                                 ? fmt::format("unknown type 0x{:02x}", static_cast<unsigned>(record.type))
                                 : std::string(type),
                             record.name, record.generation, time_text(record.timestamp), flag_text(record.flags));
    if (!record.target.empty()) std::cout << fmt::format("   target {:?}\n", record.target);
    std::cout << fmt::format("   {} at {}, loss {}, acc {}, pass {}, custom {}\n", bytes_text(record.data.size()),
                             record.offset, record.metrics[0], record.metrics[1], record.metrics[2], record.metrics[3]);
    std::cout << fmt::format("   parent {} {}\n", engine::hex(record.parent_hash), link_text(links[i]));
  }
  if (opened.appendix.records.empty() && opened.appendix.problem.empty()) std::cout << "no records\n";
  if (!opened.appendix.problem.empty()) throw Error(options.file + ": " + opened.appendix.problem);
}

void verify(const Options& options) {
  const Opened opened(options.file);
  const auto problems = engine::appendix_problems(opened.appendix);
  for (const auto& problem : problems) std::cout << "wrong: " << printable(problem) << '\n';
  const auto records = opened.appendix.records.size();
  if (!problems.empty()) {
    std::cout << fmt::format("{}: the lineage does not hold ({} records)\n", printable(options.file), records);
    throw CLI::RuntimeError(1);
  }
  const auto links = engine::check_lineage(opened.appendix);
  const auto old = std::count(links.begin(), links.end(), Link::kOld);
  std::cout << fmt::format("{}: {} {}, every link holds{}\n", printable(options.file), records,
                           records == 1 ? "record" : "records",
                           old == 0 ? "" : fmt::format(" ({} in the older form)", old));
}

void append(const Options& options) {
  engine::NewRecord record = options.record;
  if (!engine::find_appendix_type(options.type, record.type)) throw Error("unknown record type", ErrorKind::kUsage);
  std::optional<engine::MappedFile> data;
  if (!options.data.empty()) record.data = data.emplace(options.data).bytes();
  record.flags = options.inactive ? 0 : engine::kAppendixActive;
  if (options.compressed) record.flags |= engine::kAppendixCompressed;
  record.timestamp = options.timestamp.value_or(static_cast<std::uint64_t>(std::time(nullptr)));
  if (options.generation) {
    record.generation = *options.generation;
  } else {
    std::uint32_t last = 0;
    for (const auto& old : Opened(options.file).appendix.records) last = std::max(last, old.generation);
    if (last == std::numeric_limits<std::uint32_t>::max())
      throw Error(fmt::format("{}: generation {} is the last there can be", options.file, last));
    record.generation = last + 1;
  }
  engine::append_record(options.file, record);
  std::cerr << fmt::format("{}: appended {} {:?} as generation {}\n", printable(options.file), options.type,
                           record.name, record.generation);
}

void roll_back(const Options& options) {
  const auto dropped = engine::roll_back(options.file, options.roll_back_to);
  std::cerr << fmt::format("{}: {} {} dropped\n", printable(options.file), dropped,
                           dropped == 1 ? "record" : "records");
}

}  // namespace

void add_appendix_command(CLI::App& app) {
  auto* command = app.add_subcommand("appendix", "Lineage records of a .hk file: list, append, roll back, verify");
  command->require_subcommand(1);
  const auto options = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* help, void (*run)(const Options&)) {
    auto* sub = command->add_subcommand(name, help);
    sub->add_option("file", options->file, "A .hk file")->required();
    sub->callback([options, run] { run(*options); });
    return sub;
  };
  add("list", "Every record with its metrics and its link to the one before", list);
  add("verify", "Check the chain of parent hashes; exit code 1 when it is broken", verify);
  auto* append_command = add("append", "Append a record", append);
  append_command->add_option("--type", options->type, "Kind of record")
      ->required()
      ->check(
          CLI::IsMember({"lora_adapter", "delta_patch", "new_layer", "code_eval", "kv_cache_sink", "topology_head"}));
  append_command->add_option("--name", options->record.name, "Name of the record")->required();
  append_command->add_option("--target", options->record.target, "What it applies to, such as a tensor");
  append_command->add_option("--data", options->data, "File with the payload [none]");
  append_command->add_option("--generation", options->generation, "Generation [one more than the last]");
  append_command->add_option("--timestamp", options->timestamp, "Seconds since 1970 [now]");
  append_command->add_option("--loss", options->record.metrics[0], "Metric: loss");
  append_command->add_option("--acc", options->record.metrics[1], "Metric: accuracy");
  append_command->add_option("--pass", options->record.metrics[2], "Metric: pass rate");
  append_command->add_option("--custom", options->record.metrics[3], "Metric of your own");
  append_command->add_flag("--compressed", options->compressed, "Mark the payload as compressed");
  append_command->add_flag("--inactive", options->inactive, "Do not mark the record as active");
  auto* roll_back_command = add("rollback", "Drop the records of a higher generation", roll_back);
  roll_back_command->add_option("--generation", options->roll_back_to, "Last generation to keep")->required();
}

}  // namespace hk::cli
