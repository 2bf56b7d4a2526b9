// From any readable model to .hk: plan the tensors, share them out over files, stream the payloads.
#include "engine/container/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "engine/container/gguf_reader.h"
#include "engine/container/hk_reader.h"
#include "engine/container/hk_writer.h"
#include "engine/container/mapped_file.h"

namespace hk::engine {
namespace {

/// Small enough that a wish to stop is heard within 100 ms even on a slow disk.
constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
constexpr std::uint32_t kDefaultBlockSize = 32;
constexpr std::size_t kMaxShards = 65535;  // split_count of the header is a u16

/// What happens to one tensor.
struct Step {
  const TensorView* tensor = nullptr;
  TensorPlan plan;
  bool reencode = false;
  bool shares = false;  ///< its bytes are another tensor's
  std::size_t shard = 0;
  std::size_t index = 0;  ///< in its shard
};

// --- metadata ---

/// general.file_type for files whose matrices are mostly of one type; nothing where no number is known.
std::optional<std::int64_t> file_type_number(StorageType type) {
  switch (type) {
    case StorageType::kF32:
      return 0;
    case StorageType::kF16:
      return 1;
    case StorageType::kQ4_0:
      return 2;
    case StorageType::kQ4_1:
      return 3;
    case StorageType::kQ8_0:
      return 7;
    case StorageType::kQ5_0:
      return 8;
    case StorageType::kQ5_1:
      return 9;
    case StorageType::kQ2_K:
      return 10;
    case StorageType::kQ3_K:
      return 12;
    case StorageType::kQ4_K:
      return 15;
    case StorageType::kQ5_K:
      return 17;
    case StorageType::kQ6_K:
      return 18;
    case StorageType::kIQ4_NL:
      return 25;
    case StorageType::kIQ4_XS:
      return 30;
    case StorageType::kBF16:
      return 32;
    case StorageType::kTQ1_0:
      return 36;
    case StorageType::kTQ2_0:
      return 37;
    default:
      return std::nullopt;
  }
}

/// Keys as they are, except those that would no longer be true: the numbering of GGUF splits that were put together,
/// and the file type of weights that are stored anew.
MetadataBuilder build_metadata(const ModelReader& model, const ConvertOptions& options) {
  constexpr std::string_view kFormatKey = "hk.source.format", kVersionKey = "hk.source.gguf_version";
  const auto* gguf = dynamic_cast<const GgufReader*>(&model);
  const bool joined = gguf != nullptr && gguf->files().size() > 1;
  MetadataBuilder metadata;
  for (const auto& entry : model.metadata().entries()) {
    if (joined && (entry.key == "split.no" || entry.key == "split.count" || entry.key == "split.tensors.count"))
      continue;
    if (gguf != nullptr && (entry.key == kFormatKey || entry.key == kVersionKey)) continue;
    if (options.type && entry.key == "general.file_type") {
      if (const auto number = file_type_number(*options.type)) metadata.add_integer(entry.key, *number);
      continue;
    }
    metadata.add(entry);
  }
  if (gguf != nullptr) {
    metadata.add_string(kFormatKey, "gguf");
    metadata.add_integer(kVersionKey, gguf->version());
  }
  return metadata;
}

/// Shards after the first only say what they belong to.
MetadataBuilder build_shard_metadata(const Metadata& source) {
  MetadataBuilder metadata;
  if (const auto* architecture = source.find("general.architecture")) metadata.add(*architecture);
  return metadata;
}

// --- plan ---

Step plan_tensor(const TensorView& tensor, const ConvertOptions& options, std::vector<std::string>& notes) {
  if (!tensor.problem.empty()) throw Error(tensor.problem);
  Step step;
  step.tensor = &tensor;
  auto& plan = step.plan;
  plan.name = tensor.name;
  plan.type = tensor.type;
  plan.shape.assign(tensor.shape, tensor.shape + tensor.ndim);
  plan.tile_layout = tensor.tile_layout;
  plan.sparsity = tensor.sparsity;
  plan.sparsity_ratio = tensor.sparsity_ratio;
  plan.block_size = tensor.block_size;
  if (!tensor.shared_with.empty()) {
    plan.type = StorageType::kSharedRef;
    plan.shared_with = tensor.shared_with;
    step.shares = true;
    return step;
  }
  plan.data_size = tensor.data.size();
  plan.scale_size = tensor.scales.size();
  plan.residual_size = tensor.residual.size();
  StorageChoice choice{tensor.type, ""};
  if (options.type) choice = choose_storage(tensor, *options.type);
  if (!choice.note.empty()) notes.push_back(std::move(choice.note));
  const kernels::Format* chosen = kernels::find_format(choice.type);
  if (chosen != nullptr && !chosen->in_hk) choice.type = StorageType::kQ4_0;
  if (choice.type == tensor.type) return step;
  const auto& format = *kernels::find_format(choice.type);
  step.reencode = true;
  plan.type = choice.type;
  plan.block_size = format.block_elements > 1 ? format.block_elements : kDefaultBlockSize;
  if (__builtin_mul_overflow(tensor.elements() / format.block_elements, std::uint64_t{format.block_bytes},
                             &plan.data_size))
    throw Error(fmt::format("tensor '{}' is too large to be stored as {}", tensor.name, format.name));
  plan.residual_size = 0;  // choose_storage leaves tensors with streams beside the data alone
  return step;
}

/// Puts tensors into files in source order, a new one when the next would make the current too large. A tensor that
/// shares its bytes goes where they are. Returns the number of files.
std::size_t share_out(std::vector<Step>& steps, std::uint64_t shard_bytes) {
  std::unordered_map<std::string_view, std::size_t> shard_of;
  std::vector<std::size_t> counts(1);
  std::uint64_t filled = 0;
  for (auto& step : steps) {
    if (step.shares) {
      const auto target = shard_of.find(step.plan.shared_with);
      step.shard = target == shard_of.end() ? counts.size() - 1 : target->second;  // the writer refuses a dangling one
    } else {
      const std::uint64_t size = step.plan.data_size + step.plan.scale_size + step.plan.residual_size;
      if (shard_bytes != 0 && filled != 0 && (size > shard_bytes || filled > shard_bytes - size)) {
        counts.push_back(0);
        filled = 0;
      }
      filled += size;
      step.shard = counts.size() - 1;
    }
    step.index = counts[step.shard]++;
    shard_of.emplace(step.plan.name, step.shard);
  }
  return counts.size();
}

// --- payloads ---

class PayloadCopier {
 public:
  PayloadCopier(const ConvertOptions& options, std::uint64_t total) : options_(options), total_(total) {
    if (!options_.parallel)
      parallel_ = [](std::size_t count, const std::function<void(std::size_t)>& work) {
        for (std::size_t i = 0; i < count; ++i) work(i);
      };
    else
      parallel_ = options_.parallel;
    report();
  }

  void run(const Step& step, HkWriter& writer) {
    if (step.shares) return;
    if (step.reencode) {
      std::uint64_t at = 0;
      reencode(*step.tensor, step.plan.type, parallel_, [&](std::span<const std::byte> blocks) {
        while (!blocks.empty()) {
          const auto piece =
              blocks.first(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, blocks.size())));
          writer.write(step.index, HkWriter::Stream::kData, at, piece);
          at += piece.size();
          blocks = blocks.subspan(piece.size());
          advance(piece.size());
        }
      });
      return;
    }
    copy(step, HkWriter::Stream::kData, step.tensor->data, writer);
    copy(step, HkWriter::Stream::kScales, step.tensor->scales, writer);
    copy(step, HkWriter::Stream::kResidual, step.tensor->residual, writer);
  }

 private:
  void copy(const Step& step, HkWriter::Stream stream, std::span<const std::byte> bytes, HkWriter& writer) {
    for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes) {
      const auto piece = bytes.subspan(at, std::min<std::size_t>(kPieceBytes, bytes.size() - at));
      writer.write(step.index, stream, at, piece);
      release_pages(piece);
      advance(piece.size());
    }
  }
  void advance(std::uint64_t bytes) {
    done_ += bytes;
    report();
  }
  void report() const {
    if (options_.progress) options_.progress(done_, total_);
  }

  const ConvertOptions& options_;
  ParallelFor parallel_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
};

std::string without_extension(const std::string& path) {
  constexpr std::string_view kExtension = ".hk";
  return path.ends_with(kExtension) ? path.substr(0, path.size() - kExtension.size()) : path;
}

void note_losses(const ModelReader& model, const std::vector<Step>& steps, ConvertResult& result) {
  std::size_t again = 0;
  for (const auto& step : steps)
    if (step.reencode && kernels::find_format(step.tensor->type)->block_elements > 1 &&
        !keeps_values(step.tensor->type, step.plan.type))
      ++again;
  if (again != 0)
    result.notes.push_back(fmt::format(
        "{} matrices were quantized already and lose a little more; a model in f16 or bf16 is the better source",
        again));
  if (const auto* hk = dynamic_cast<const HkReader*>(&model))
    for (const auto& file : hk->files())
      if (file.header.appendix_offset != 0)
        result.notes.push_back(fmt::format("the appendix of {} is not carried over", file.path()));
}

}  // namespace

ConvertResult convert_model(const ModelReader& model, const std::string& path, const ConvertOptions& options) {
  ConvertResult result;
  std::vector<Step> steps;
  steps.reserve(model.tensors().size());
  for (const auto& tensor : model.tensors()) steps.push_back(plan_tensor(tensor, options, result.notes));
  const std::size_t shards = share_out(steps, options.shard_bytes);
  if (shards > kMaxShards)
    throw Error(fmt::format("{} files of {} bytes would be needed; {} is the most: choose larger ones", shards,
                            options.shard_bytes, kMaxShards),
                ErrorKind::kUsage);

  const auto stem = without_extension(path);
  std::vector<std::unique_ptr<HkWriter>> writers;
  std::uint64_t total = 0;
  for (std::size_t shard = 0; shard < shards; ++shard) {
    const auto name =
        shards == 1 ? path : hk_shard_name(stem, static_cast<std::uint32_t>(shard), static_cast<std::uint32_t>(shards));
    std::vector<TensorPlan> plans;
    for (const auto& step : steps)
      if (step.shard == shard) plans.push_back(step.plan);
    const auto metadata = shard == 0 ? build_metadata(model, options) : build_shard_metadata(model.metadata());
    writers.push_back(std::make_unique<HkWriter>(name,
                                                 HkWriter::Options{.alignment = options.alignment,
                                                                   .split_index = static_cast<std::uint32_t>(shard),
                                                                   .split_count = static_cast<std::uint32_t>(shards)},
                                                 metadata, std::move(plans)));
    result.files.push_back(name);
    result.bytes += writers.back()->file_size();
    total += writers.back()->payload_size();
  }

  PayloadCopier copier(options, total);
  for (const auto& step : steps) copier.run(step, *writers[step.shard]);
  for (auto& writer : writers) writer->sync();
  for (auto& writer : writers) writer->commit();
  if (shards > 1) {
    std::vector<std::pair<std::string, std::string>> tensor_files;
    for (const auto& step : steps)
      tensor_files.emplace_back(step.plan.name, std::filesystem::path(result.files[step.shard]).filename().string());
    const auto index = stem + ".hk.index.json";
    write_hk_index(index, tensor_files);
    result.files.push_back(index);
  }
  result.tensors = steps.size();
  result.reencoded = static_cast<std::size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& step) { return step.reencode; }));
  note_losses(model, steps, result);
  return result;
}

}  // namespace hk::engine
