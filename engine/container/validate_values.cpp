// Values that cannot be meant: infinite or undefined scales of quantized tensors, and contradictions inside payloads.
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "engine/container/metadata_blob.h"
#include "engine/container/payload.h"
#include "engine/container/validate.h"

namespace hk::engine {
namespace {

using kernels::StorageClass;

/// Elements decoded at a time: a multiple of every block, small enough for the second-level cache.
constexpr std::uint64_t kChunk = 16384;
/// Checked together by all threads; progress is reported (and may stop the work) between two batches. About 10 ms.
constexpr std::uint64_t kBatchChunks = 64;

bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7F800000u) != 0x7F800000u; }

/// A plain loop over bits: compilers make vectors of it.
bool all_finite(std::span<const float> values) {
  std::uint32_t worst = 0;
  for (const float value : values) worst = std::max(worst, std::bit_cast<std::uint32_t>(value) & 0x7F800000u);
  return worst != 0x7F800000u;
}

/// fp8 has NaN among its codes and integers have none: only these types are looked at.
bool is_float_type(StorageType type) {
  return type == StorageType::kF32 || type == StorageType::kF16 || type == StorageType::kBF16 ||
         type == StorageType::kF64;
}

}  // namespace

void check_values(const ModelReader& reader, const TensorView& tensor, std::vector<Finding>& findings,
                  const std::function<void(std::uint64_t bytes)>& progress) {
  const auto name = [&] { return fmt::format("{}: tensor {:?}: ", reader.path(), tensor.name); };
  if (auto problem = check_contents(tensor); !problem.empty()) {
    findings.push_back({true, name() + std::move(problem)});
    return;
  }
  const auto kind = payload_kind(tensor, !tensor.scales.empty());
  const bool f32_scales =
      kind == PayloadKind::kDual || (kind == PayloadKind::kSplitBlocks && tensor.type == StorageType::kIQ4_NL);
  if (f32_scales) {
    for (std::uint64_t i = 0; i < tensor.scales.size() / 4; ++i) {
      const auto scale = load_little_endian<float>(tensor.scales.data() + 4 * i);
      if (is_finite(scale)) continue;
      findings.push_back({true, name() + fmt::format("scale {} is {}; scales are finite", i, scale)});
      return;
    }
  }
  if (kind != PayloadKind::kBlocks) return;
  const auto& format = *kernels::find_format(tensor.type);
  const bool blocks = format.storage_class == StorageClass::kBlock;
  if (!blocks && !is_float_type(tensor.type)) return;
  // With finite scales every block decodes to finite numbers (mxfp4 alone can overflow, which is as useless), and with
  // others none does.
  const std::uint64_t elements = tensor.elements();
  const auto bytes_before = [&](std::uint64_t element) { return element / format.block_elements * format.block_bytes; };
  for (std::uint64_t batch = 0; batch < elements; batch += kBatchChunks * kChunk) {
    const auto chunks = std::min(kBatchChunks, (elements - batch + kChunk - 1) / kChunk);
    std::atomic<std::uint64_t> bad = elements;
    tbb::parallel_for(std::uint64_t{0}, chunks, [&](std::uint64_t chunk) {
      alignas(64) std::array<float, kChunk> buffer;
      const auto start = batch + chunk * kChunk;
      const auto values = std::span(buffer).first(std::min(kChunk, elements - start));
      format.decode(tensor.data.data() + bytes_before(start), values.data(), values.size());
      if (all_finite(values)) return;
      const auto at = start + static_cast<std::uint64_t>(std::find_if_not(values.begin(), values.end(), is_finite) -
                                                         values.begin());
      auto first = bad.load();
      while (at < first && !bad.compare_exchange_weak(first, at)) {
      }
    });
    if (const auto element = bad.load(); element != elements) {
      findings.push_back({blocks, name() + (blocks ? fmt::format("the scale of {} block {} is infinite or no number",
                                                                 format.name, element / format.block_elements)
                                                   : fmt::format("element {} is infinite or no number", element))});
      return;
    }
    progress(bytes_before(std::min(elements, batch + chunks * kChunk)));
  }
}

}  // namespace hk::engine
