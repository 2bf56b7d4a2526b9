// Opening a model (see open.h).
#include "models/open.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "models/families/families.h"
#include "models/transformer.h"

namespace hk::models {

namespace {

/// Bytes of the experts that a token leaves alone.
std::uint64_t unread_expert_bytes(const ModelSpec& spec) {
  std::uint64_t bytes = 0;
  for (const LayerSpec& layer : spec.layers) {
    for (const MatrixBank* bank : {&layer.experts.gate, &layer.experts.up, &layer.experts.down}) {
      if (*bank) bytes += (bank->count - layer.experts.router.used) * bank->first.rows * bank->first.row_bytes;
    }
  }
  return bytes;
}

/// Whether the tensor is "blk.<n>...." with n beyond the layers that are run.
bool of_trailing_layer(std::string_view name, std::size_t layers) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  std::size_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  return error == std::errc() && layer >= layers;
}

engine::ModelInfo describe(const engine::ModelReader& reader, const Builder& builder) {
  const ModelSpec& spec = builder.spec;
  engine::ModelInfo info;
  info.architecture = spec.architecture;
  info.name = std::string(reader.metadata().string("general.name").value_or(""));
  info.vocab_size = spec.vocab_size;
  info.context_length = spec.context_length;
  info.layers = spec.layers.size();
  info.parameters = builder.weights.parameters();
  info.weight_bytes = builder.weights.bytes();
  // A token reads all matrices, but of lookup tables its own row only; a tied embedding is read whole as the output
  // matrix.
  info.weight_bytes_per_token = info.weight_bytes;
  for (const LookupTable* table : {&spec.token_embedding, &spec.position_embedding, &spec.per_layer_input.table}) {
    if (table->data != nullptr && table->data != spec.output.data)
      info.weight_bytes_per_token -= (table->rows - 1) * table->row_bytes;
  }
  info.weight_bytes_per_token -= unread_expert_bytes(spec);
  for (const std::string& key : builder.keys.unused())
    info.remarks.push_back(fmt::format("the key '{}' is not used by the {} model", key, spec.architecture));
  std::size_t trailing = 0;
  for (const std::string& name : builder.weights.unused()) {
    if (of_trailing_layer(name, spec.layers.size())) {
      ++trailing;
    } else {
      info.remarks.push_back(fmt::format("the tensor '{}' is not used by the {} model", name, spec.architecture));
    }
  }
  if (trailing != 0)
    info.remarks.push_back(fmt::format("{} tensors of layers from {} on, which guess tokens ahead, are not used",
                                       trailing, spec.layers.size()));
  return info;
}

void check_vocabulary(const engine::ModelReader& reader, const ModelSpec& spec) {
  const std::size_t tokens = reader.metadata().array_size("tokenizer.ggml.tokens");
  if (tokens > spec.vocab_size)
    throw Error(fmt::format("{}: the vocabulary lists {} tokens, but the tensor 'token_embd.weight' has {} rows only",
                            reader.path(), tokens, spec.vocab_size));
}

}  // namespace

std::unique_ptr<engine::Model> open(std::shared_ptr<engine::ModelReader> reader, engine::ThreadPool& threads,
                                    const kernels::KernelTable& kernels) {
  const std::string architecture = read_architecture(*reader);
  const Family* family = find_family(architecture);
  if (family == nullptr)
    throw Error(fmt::format("{}: the architecture '{}' is not known to this engine, which runs {}", reader->path(),
                            architecture, fmt::join(known_architectures(), ", ")));
  Builder builder(*reader, kernels, architecture);
  family->describe(builder);
  check_vocabulary(*reader, builder.spec);
  engine::ModelInfo info = describe(*reader, builder);
  return std::make_unique<Transformer>(std::move(reader), std::move(builder.spec), std::move(info), kernels, threads);
}

std::unique_ptr<engine::Model> open(std::shared_ptr<engine::ModelReader> reader, engine::ThreadPool& threads) {
  const char* why = nullptr;
  const char* forced = std::getenv("HK_KERNELS");
  const kernels::KernelTable* level = kernels::select_level(forced == nullptr ? "" : forced, &why);
  if (level == nullptr)
    throw Error(fmt::format("HK_KERNELS={} cannot be used: {}", forced == nullptr ? "" : forced,
                            why == nullptr ? "no such level" : why),
                ErrorKind::kUsage);
  return open(std::move(reader), threads, *level);
}

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const Family& family : families()) names.push_back(family.architecture);
  return names;
}

}  // namespace hk::models
