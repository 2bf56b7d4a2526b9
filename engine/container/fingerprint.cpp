// Fingerprint of a model.
#include "engine/container/fingerprint.h"

#include <algorithm>

#include "base/checksum.h"

namespace hk::engine {
namespace {

/// Bytes of a tensor that are looked at, at its beginning and in its middle: enough to tell any two trainings or
/// quantizations apart, little enough for a cold disk.
constexpr std::size_t kSample = 256;

}  // namespace

std::uint64_t model_fingerprint(const ModelReader& reader) {
  std::uint64_t sum = checksum(reader.container());
  const auto number = [&](std::uint64_t value) { sum = checksum(std::as_bytes(std::span(&value, 1)), sum); };
  for (const MetadataEntry& entry : reader.metadata().entries()) {
    sum = checksum(entry.key, sum);
    number(static_cast<std::uint64_t>(entry.type));
    sum = checksum(entry.value, sum);
  }
  for (const TensorView& tensor : reader.tensors()) {
    sum = checksum(tensor.name, sum);
    number(static_cast<std::uint64_t>(tensor.type));
    number(tensor.data.size());
    for (std::uint32_t i = 0; i < tensor.ndim; ++i) number(tensor.shape[i]);
    sum = checksum(tensor.data.first(std::min(kSample, tensor.data.size())), sum);
    const std::size_t middle = tensor.data.size() / 2;
    sum = checksum(tensor.data.subspan(middle, std::min(kSample, tensor.data.size() - middle)), sum);
  }
  return sum;
}

}  // namespace hk::engine
