// Changing the storage type of weight matrices.
#include "engine/container/requantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "engine/container/mapped_file.h"
#include "kernels/quant/transcode.h"

namespace hk::engine {
namespace {

using kernels::find_format;
using kernels::Format;

/// Elements that are decoded at once: 2 MiB as f32, enough pieces to share out among threads, and done well within 100
/// ms by the slowest encoder.
constexpr std::size_t kBatchElements = std::size_t{512} << 10;
/// Elements of one piece of work. A whole number of blocks of every type.
constexpr std::size_t kPieceElements = std::size_t{16} << 10;

/// Parts of names of matrices that are not plain products with activations, or so small and touchy that no file
/// quantizes them: norms, routers, convolutions, mixing vectors of recurrent models, low-rank side paths, position
/// tables.
constexpr std::array<std::string_view, 20> kKeptNames = {
    "_norm",          "ffn_gate_inp",   "ssm_conv1d",           "shortconv.conv", "lerp",
    "altup",          "laurel",         "per_layer_model_proj", "position_embd",  "token_types",
    "time_mix_first", "time_mix_decay", "time_mix_w",           "time_mix_a",     "time_mix_v1",
    "time_mix_v2",    "time_mix_g1",    "time_mix_g2",          "attn_rel_b",     "ssm_dt"};

bool is_weight_matrix(const TensorView& tensor) {
  if (tensor.ndim != 2 && tensor.ndim != 3) return false;
  if (!tensor.name.ends_with(".weight")) return false;
  return std::none_of(kKeptNames.begin(), kKeptNames.end(),
                      [&](std::string_view part) { return tensor.name.find(part) != std::string_view::npos; });
}

bool can_decode(const TensorView& tensor) {
  const auto* format = find_format(tensor.type);
  return tensor.problem.empty() && format != nullptr && format->decode != nullptr && tensor.scales.empty() &&
         tensor.tile_layout == TileLayout::kRowMajor && tensor.sparsity == Sparsity::kNone;
}

bool is_integer_data(StorageType type) {
  switch (type) {
    case StorageType::kInt8:
    case StorageType::kInt16:
    case StorageType::kInt32:
    case StorageType::kInt64:
    case StorageType::kUInt8:
    case StorageType::kUInt16:
    case StorageType::kUInt32:
    case StorageType::kUInt64:
    case StorageType::kBool:
      return true;
    default:
      return false;
  }
}

/// The type of 32-element blocks nearest in bits a weight, rather larger than smaller, for rows that do not fit 256.
StorageType small_block_type(StorageType wanted) {
  switch (wanted) {
    case StorageType::kQ5_K:
      return StorageType::kQ5_1;
    case StorageType::kQ4_K:
      return StorageType::kQ5_0;
    case StorageType::kQ6_K:
    case StorageType::kQ8_K:
      return StorageType::kQ8_0;
    default:
      return StorageType::kQ4_0;
  }
}

}  // namespace

bool keeps_values(StorageType from, StorageType to) { return !find_format(from)->in_hk && to == StorageType::kQ4_0; }

StorageChoice choose_storage(const TensorView& tensor, StorageType wanted) {
  if (tensor.type == wanted || !is_weight_matrix(tensor) || is_integer_data(tensor.type)) return {tensor.type, ""};
  const auto& want = *find_format(wanted);
  if (!can_decode(tensor))
    return {tensor.type, fmt::format("tensor '{}' stays {}: the type has no element-wise decode", tensor.name,
                                     kernels::storage_type_name(tensor.type))};
  if (tensor.cols() % want.block_elements == 0) return {wanted, ""};
  if (want.block_elements > 32) {
    const auto fallback = small_block_type(wanted);
    const auto& format = *find_format(fallback);
    if (format.encode != nullptr && tensor.cols() % format.block_elements == 0)
      return {fallback, fmt::format("tensor '{}' becomes {} instead of {}: its rows of {} are no multiple of {}",
                                    tensor.name, format.name, want.name, tensor.cols(), want.block_elements)};
  }
  return {tensor.type, fmt::format("tensor '{}' stays {}: its rows of {} are no multiple of {}", tensor.name,
                                   kernels::storage_type_name(tensor.type), tensor.cols(), want.block_elements)};
}

StorageType parse_target_type(std::string_view name) {
  const auto* format = find_format(name);
  const auto writable = [](const Format& row) {
    return row.encode != nullptr && row.activation != kernels::ActivationFormat::kNone;
  };
  if (format != nullptr && writable(*format)) return format->type;
  std::string possible;
  for (const auto& row : kernels::formats())
    if (writable(row)) possible += fmt::format("{}{}", possible.empty() ? "" : ", ", row.name);
  throw Error(
      fmt::format("'{}' is {}; possible are {}", name,
                  format == nullptr ? "no storage type" : "a storage type that weights cannot be written in", possible),
      ErrorKind::kUsage);
}

void reencode(const TensorView& tensor, StorageType type, const ParallelFor& parallel,
              const std::function<void(std::span<const std::byte>)>& sink) {
  const Format& from = *find_format(tensor.type);
  const Format& to = *find_format(type);
  const std::uint64_t total = tensor.elements();
  const auto batch = static_cast<std::size_t>(std::min<std::uint64_t>(total, kBatchElements));
  std::vector<float> values(batch);
  std::vector<std::byte> blocks(batch / to.block_elements * to.block_bytes);
  // Rows are whole numbers of blocks of both types and lie without gaps, so the tensor can be cut at any common
  // multiple.
  for (std::uint64_t done = 0; done < total; done += batch) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(batch, total - done));
    const std::byte* source = tensor.data.data() + done / from.block_elements * from.block_bytes;
    parallel((count + kPieceElements - 1) / kPieceElements, [&](std::size_t piece) {
      const std::size_t first = piece * kPieceElements;
      const std::size_t size = std::min(kPieceElements, count - first);
      if (keeps_values(from.type, type)) {
        kernels::transcode_to_q4_0(from.type, source + first / from.block_elements * from.block_bytes,
                                   blocks.data() + first / to.block_elements * to.block_bytes, size);
        return;
      }
      from.decode(source + first / from.block_elements * from.block_bytes, values.data() + first, size);
      to.encode(values.data() + first, blocks.data() + first / to.block_elements * to.block_bytes, size);
    });
    sink(std::span(blocks).first(count / to.block_elements * to.block_bytes));
    release_pages({source, count / from.block_elements * from.block_bytes});
  }
}

}  // namespace hk::engine
