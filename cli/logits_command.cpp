// hk-run logits: the raw numbers a model gives for a list of token ids, one row of float32 a position, for comparisons.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/kv_option.h"
#include "cli/logits_difference.h"
#include "cli/model_options.h"
#include "cli/output_check.h"
#include "cli/progress.h"
#include "engine/container/atomic_file.h"
#include "engine/container/model_reader.h"
#include "engine/runtime/thread_pool.h"
#include "engine/runtime/topology.h"
#include "models/open.h"

namespace hk::cli {
namespace {

using engine::TokenId;

struct Options {
  std::string file;
  std::string tokens;
  std::optional<std::string> out, against;
  std::optional<std::size_t> context;
  std::size_t batch = 256;
  std::string kv{kUsualKv};
  std::optional<int> threads;
  std::optional<std::string> memory_limit;
  LoadOptions load;
};

struct TokenList {
  std::vector<TokenId> ids;
  std::optional<std::size_t> context;  ///< a file may say which one its numbers were made with
};

/// Null when a value is not a whole number that fits.
std::optional<std::vector<TokenId>> read_ids(const nlohmann::json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<TokenId> ids;
  for (const nlohmann::json& value : list) {
    if (!value.is_number_integer()) return std::nullopt;
    const auto id = value.get<std::int64_t>();
    if (id < 0 || id > std::numeric_limits<TokenId>::max()) return std::nullopt;
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

TokenList read_token_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error(fmt::format("{}: the file of token ids cannot be opened", path));
  const auto json = nlohmann::json::parse(in, nullptr, false);
  const bool named = json.is_object() && json.contains("tokens");
  TokenList list;
  auto ids = read_ids(named ? json.at("tokens") : json);
  if (!ids)
    throw Error(
        fmt::format("{}: expected a JSON array of token ids, or {{\"tokens\": [ids], \"n_ctx\": number}}", path));
  list.ids = std::move(*ids);
  if (named && json.contains("n_ctx")) {
    if (!json.at("n_ctx").is_number_unsigned())
      throw Error(fmt::format("{}: \"n_ctx\" is {}, but a whole number is expected", path, json.at("n_ctx").dump()));
    list.context = json.at("n_ctx").get<std::size_t>();
  }
  return list;
}

TokenList read_tokens(const std::string& text) {
  if (text.starts_with('@')) return read_token_file(text.substr(1));
  TokenList list;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view word = rest.substr(0, comma);
    while (word.starts_with(' ')) word.remove_prefix(1);
    while (word.ends_with(' ')) word.remove_suffix(1);
    TokenId id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size())
      throw Error(
          fmt::format("--tokens: '{}' is not a token id; expected numbers separated by commas, or @file.json", word),
          ErrorKind::kUsage);
    list.ids.push_back(id);
    rest.remove_prefix(std::min(rest.size(), comma + 1));
  }
  return list;
}

void run_logits(const Options& options) {
  const TokenList list = read_tokens(options.tokens);
  if (!options.out && !options.against)
    throw Error("nothing to do with the logits: give a file to write (-o) or to compare with (--against)",
                ErrorKind::kUsage);
  if (list.ids.empty()) throw Error("--tokens: at least one token id is needed", ErrorKind::kUsage);
  const engine::NumaPlan numa = options.load.place();
  engine::ThreadPool threads(options.threads ? *options.threads : default_threads(engine::read_topology()).threads,
                             [&numa](int worker) { engine::place_worker(numa, worker); });
  const std::shared_ptr<engine::ModelReader> reader = engine::open_model(options.file);
  if (options.out) {
    refuse_inputs(*options.out, *reader);
    if (options.tokens.starts_with('@')) refuse_inputs(*options.out, std::vector{options.tokens.substr(1)});
    if (options.against) refuse_inputs(*options.out, std::vector{*options.against});
  }
  const auto model = models::open(reader, threads);
  for (const std::string& remark : model->info().remarks) fmt::print(stderr, "hk-run: {}: {}\n", options.file, remark);

  const std::size_t context = options.context ? *options.context : list.context.value_or(list.ids.size());
  const engine::SequenceOptions how{context, parse_kv(options.kv)};
  // Positions beyond the list are never filled.
  const std::size_t most_rows = std::min(options.batch, list.ids.size());
  plan_model_memory(*model, *reader,
                    {{list.ids.size(), how.kv}, 1, most_rows, true, options.load.mode(), options.memory_limit});
  const InterruptGuard guard;
  options.load.bring_weights(*reader, threads);
  const auto sequence = model->new_sequence(how);
  std::optional<LogitsDifference> difference;
  if (options.against) difference.emplace(*options.against, list.ids.size(), model->info().vocab_size);
  std::optional<engine::AtomicFile> out;
  if (options.out) out.emplace(*options.out);
  Progress progress("computing logits", 0);
  std::uint64_t offset = 0;
  for (std::size_t done = 0; done < list.ids.size();) {
    const auto part = std::span(list.ids).subspan(done, std::min(options.batch, list.ids.size() - done));
    const engine::BatchItem item{sequence.get(), part, engine::LogitsFor::kAll};
    const auto rows = model->forward({&item, 1}, {InterruptGuard::interrupted, {}});
    InterruptGuard::check();
    if (out) out->write(offset, std::as_bytes(rows));
    if (difference) difference->add(rows);
    offset += rows.size_bytes();
    done += part.size();
    progress.update(offset, list.ids.size() * model->info().vocab_size * sizeof(float));
  }
  if (out) {
    out->sync();
    out->commit();
  }
  if (difference) fmt::print("{}\n", difference->text());
}

}  // namespace

void add_logits_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("logits", "Write the logits of every position of a token sequence (float32 rows)");
  command->add_option("file", options->file, "Model file (.hk or .gguf)")->required();
  command->add_option("--tokens", options->tokens, "Token ids: 1,2,3 or @file.json (an array, or {\"tokens\": [...]})")
      ->required();
  command->add_option("-o,--output", options->out, "File to write: little-endian float32, one row a position");
  command->add_option("--against", options->against,
                      "Such a file of another run: says how far this run's logits are from it");
  command
      ->add_option("--ctx", options->context, "Context length (default: that of the token file, else the token count)")
      ->check(CLI::PositiveNumber);
  command->add_option("--batch", options->batch, "Tokens given to the model at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--kv", options->kv, kv_help())->capture_default_str();
  command->add_option("-t,--threads", options->threads, "Threads (default: the physical fast cores)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--mem-limit", options->memory_limit, "Private memory at most, such as 8G");
  options->load.add_to(*command);
  command->callback([options] { run_logits(*options); });
}

}  // namespace hk::cli
