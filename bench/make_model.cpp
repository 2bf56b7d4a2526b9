// make_model: writes a .hk file of made-up weights in any shape and format, for measuring speed without a real model.
//
// Random codes under ordinary scales; norm weights carry random signs and make the products come out near one, so that
// activations keep the size they have in a trained model and nothing overflows half precision.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/made_shape.h"
#include "bench/made_vocabulary.h"
#include "engine/container/hk_writer.h"
#include "kernels/quant/sample_blocks.h"

namespace hk::bench {
namespace {

using kernels::Format;
using kernels::StorageType;

struct Options {
  std::string preset = "llama-1b", out, type = "q4_k", output_type;
  std::optional<std::string> architecture;
  std::optional<std::size_t> width, layers, heads, kv_heads, head_size, feed_forward, vocabulary, context;
  std::optional<std::size_t> experts, experts_used;
  bool tied = false, untied = false;
  std::uint64_t seed = 1;
};

const Format& weight_format(const std::string& name, const char* option) {
  const Format* format = kernels::find_format(name);
  if (format == nullptr || format->activation == kernels::ActivationFormat::kNone)
    throw Error(fmt::format("{}: '{}' is no format of weights that the engine runs", option, name), ErrorKind::kUsage);
  return *format;
}

/// Blocks of one format, made once: rows are stretches of it from random places, so that no two are alike and a
/// gigabyte is written as fast as memory is copied.
class BlockPool {
 public:
  BlockPool(const Format& format, std::uint64_t seed) : format_(format) {
    constexpr std::size_t kPoolBytes = std::size_t{8} << 20;
    blocks_ = kPoolBytes / format.block_bytes;
    bytes_.resize(blocks_ * format.block_bytes);
    kernels::SampleRandom random(seed);
    if (!kernels::fill_sample_blocks(format, bytes_.data(), blocks_, random))
      throw Error(fmt::format("there are no made-up weights of type {}", format.name));
  }
  void copy_row(std::size_t blocks, kernels::SampleRandom& random, std::byte* out) const {
    while (blocks != 0) {
      const std::size_t from = random.bits() % blocks_, count = std::min(blocks, blocks_ - from);
      std::memcpy(out, bytes_.data() + from * format_.block_bytes, count * format_.block_bytes);
      out += count * format_.block_bytes;
      blocks -= count;
    }
  }
  /// Root of the mean square of the values.
  double magnitude() const {
    const std::size_t n = std::min<std::size_t>(blocks_, 1024) * format_.block_elements;
    std::vector<float> values(n);
    format_.decode(bytes_.data(), values.data(), n);
    double sum = 0;
    for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(sum / static_cast<double>(n));
  }

 private:
  const Format& format_;
  std::size_t blocks_ = 0;
  std::vector<std::byte> bytes_;
};

class Maker {
 public:
  Maker(const ModelShape& shape, const Format& type, const Format& output_type, std::uint64_t seed)
      : shape_(shape), type_(type), output_type_(output_type), random_(seed) {
    for (const MadeTensor& tensor : tensors_of(shape)) {
      engine::TensorPlan plan;
      plan.name = tensor.name;
      plan.shape = tensor.shape;
      const Format& format = format_of(tensor);
      plan.type = format.type;
      std::uint64_t rows = 1;
      for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
      plan.data_size = rows * (tensor.shape.back() / format.block_elements * format.block_bytes);
      plans_.push_back(plan);
      tensors_.push_back(tensor);
    }
  }

  void write(const std::string& path) {
    engine::MetadataBuilder metadata;
    add_shape(shape_, metadata);
    add_vocabulary(shape_.vocabulary, shape_.architecture == "llama" ? "llama-bpe" : "qwen2", metadata);
    engine::HkWriter writer(path, {}, metadata, plans_);
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const Role role = tensors_[i].role;
      if (role == Role::kInputNorm || role == Role::kHeadNorm) {
        write_norm(writer, i);
      } else {
        write_rows(writer, i);
      }
    }
    writer.finish();
    fmt::print("{}: {}, {} tensors, {:.1f} MiB, {}\n", path, shape_.name, plans_.size(),
               static_cast<double>(writer.file_size()) / 0x1p20, formats_text());
  }

 private:
  const Format& format_of(const MadeTensor& tensor) const {
    switch (tensor.role) {
      case Role::kMatrix:
      case Role::kEmbedding:
        return fitting(type_, tensor.shape.back());
      case Role::kOutput:
        return fitting(output_type_, tensor.shape.back());
      case Role::kRouter:
      case Role::kInputNorm:
      case Role::kHeadNorm:
        break;
    }
    return *kernels::find_format(StorageType::kF32);
  }

  const BlockPool& pool(StorageType type) {
    const auto found = pools_.find(type);
    if (found != pools_.end()) return found->second;
    return pools_.try_emplace(type, *kernels::find_format(type), random_.bits()).first->second;
  }

  void write_rows(engine::HkWriter& writer, std::size_t tensor) {
    const engine::TensorPlan& plan = plans_[tensor];
    const Format& format = *kernels::find_format(plan.type);
    const std::size_t blocks = plan.shape.back() / format.block_elements, row_bytes = blocks * format.block_bytes;
    constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
    std::vector<std::byte> piece(std::max<std::size_t>(1, kPieceBytes / row_bytes) * row_bytes);
    const BlockPool& source = pool(plan.type);
    for (std::uint64_t at = 0; at < plan.data_size;) {
      const std::size_t bytes = std::min<std::uint64_t>(piece.size(), plan.data_size - at);
      for (std::size_t row = 0; row < bytes; row += row_bytes) source.copy_row(blocks, random_, piece.data() + row);
      writer.write(tensor, engine::HkWriter::Stream::kData, at, {piece.data(), bytes});
      at += bytes;
    }
  }

  /// A product of `width` normalised values with random weights has the magnitude of a weight times sqrt(width).
  void write_norm(engine::HkWriter& writer, std::size_t tensor) {
    const engine::TensorPlan& plan = plans_[tensor];
    const std::size_t n = plan.shape[0];
    const bool last = plan.name == "output_norm.weight";
    const double weight = pool(fitting(last ? output_type_ : type_, shape_.width).type).magnitude();
    const double size = tensors_[tensor].role == Role::kHeadNorm ? 1 : 1 / (weight * std::sqrt(static_cast<double>(n)));
    std::vector<float> values(n);
    for (float& value : values)
      value = static_cast<float>(random_.bits() % 2 == 0 ? size : -size) * random_.between(0.5F, 1.5F);
    writer.write_data(tensor, std::as_bytes(std::span<const float>(values)));
  }

  std::string formats_text() const {
    std::map<std::string_view, std::uint64_t> bytes;
    for (const auto& plan : plans_) bytes[kernels::storage_type_name(plan.type)] += plan.data_size;
    std::string text;
    for (const auto& [name, size] : bytes)
      text += fmt::format("{}{} {:.1f} MiB", text.empty() ? "" : ", ", name, static_cast<double>(size) / 0x1p20);
    return text;
  }

  const ModelShape& shape_;
  const Format& type_;
  const Format& output_type_;
  kernels::SampleRandom random_;
  std::vector<MadeTensor> tensors_;
  std::vector<engine::TensorPlan> plans_;
  std::map<StorageType, BlockPool> pools_;
};

void run(const Options& options) {
  ModelShape shape = find_preset(options.preset);
  if (options.architecture) {
    if (*options.architecture != "llama" && *options.architecture != "qwen3")
      throw Error(fmt::format("--arch: '{}' is neither llama nor qwen3", *options.architecture), ErrorKind::kUsage);
    shape.architecture = *options.architecture;
  }
  shape.width = options.width.value_or(shape.width);
  shape.layers = options.layers.value_or(shape.layers);
  shape.heads = options.heads.value_or(shape.heads);
  shape.kv_heads = options.kv_heads.value_or(shape.kv_heads);
  shape.head_size = options.head_size.value_or(shape.head_size);
  shape.feed_forward = options.feed_forward.value_or(shape.feed_forward);
  shape.vocabulary = options.vocabulary.value_or(shape.vocabulary);
  shape.context = options.context.value_or(shape.context);
  shape.experts = options.experts.value_or(shape.experts);
  shape.experts_used = options.experts_used.value_or(shape.experts_used);
  shape.tied = (shape.tied || options.tied) && !options.untied;
  check(shape);
  const Format& type = weight_format(options.type, "--type");
  // As usual for mixtures of this kind: the output matrix of a K-type model is q6_k.
  const bool k_type = type.block_elements == 256;
  const Format& output = weight_format(!options.output_type.empty() ? options.output_type
                                       : k_type                     ? std::string("q6_k")
                                                                    : options.type,
                                       "--output-type");
  Maker(shape, type, output, options.seed).write(options.out);
}

}  // namespace
}  // namespace hk::bench

int main(int argc, char** argv) {
  hk::bench::Options options;
  CLI::App app("Writes a model of made-up weights, for measuring speed.", "make_model");
  app.add_option("preset", options.preset, "llama-1b, llama-8b, qwen3-0.6b, qwen3-30b-a3b or smol-135m")->required();
  app.add_option("out", options.out, "The .hk file to write")->required();
  app.add_option("--type", options.type, "Format of the matrices")->capture_default_str();
  app.add_option("--output-type", options.output_type, "Format of the output matrix; default: q6_k for 256-blocks");
  app.add_option("--arch", options.architecture, "llama or qwen3 instead of the preset's");
  app.add_option("--width", options.width, "Embedding length");
  app.add_option("--layers", options.layers, "Layers");
  app.add_option("--heads", options.heads, "Query heads");
  app.add_option("--kv-heads", options.kv_heads, "Key/value heads");
  app.add_option("--head-size", options.head_size, "Length of a head");
  app.add_option("--ff", options.feed_forward, "Inner width of the feed-forward, or of one expert");
  app.add_option("--vocab", options.vocabulary, "Tokens");
  app.add_option("--context", options.context, "Trained context");
  app.add_option("--experts", options.experts, "Experts of a layer");
  app.add_option("--experts-used", options.experts_used, "Experts that a token uses");
  app.add_flag("--tied", options.tied, "The output matrix is the embedding");
  app.add_flag("--untied", options.untied, "The output matrix is its own");
  app.add_option("--seed", options.seed, "Of the random weights")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    hk::bench::run(options);
  } catch (const hk::Error& error) {
    fmt::print(stderr, "make_model: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
  return 0;
}
