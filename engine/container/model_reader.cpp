// What all model readers share: tensor shapes, lookup by name, and the choice of the reader by magic.
#include "engine/container/model_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "base/error.h"
#include "engine/container/gguf_reader.h"
#include "engine/container/hk_reader.h"
#include "engine/container/mapped_file.h"

namespace hk::engine {
namespace {

std::uint64_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

/// What the first bytes say, for a sentence about a file of another kind.
std::string describe_start(std::span<const std::byte> bytes) {
  if (bytes.empty()) return "it is empty";
  const auto start = bytes.first(std::min<std::size_t>(bytes.size(), 4));
  return fmt::format("it begins with {:?}",
                     std::string_view(reinterpret_cast<const char*>(start.data()), start.size()));
}

}  // namespace

std::uint64_t TensorView::elements() const {
  std::uint64_t count = 1;
  bool overflow = false;
  for (std::uint32_t i = 0; i < ndim; ++i) {
    if (shape[i] == 0) return 0;
    overflow |= __builtin_mul_overflow(count, shape[i], &count);
  }
  return overflow ? std::numeric_limits<std::uint64_t>::max() : count;
}

std::string TensorView::shape_text() const {
  std::string text = "[";
  for (std::uint32_t i = 0; i < ndim; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

void ModelReader::index_tensors() {
  const auto all = tensors();
  if (all.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("{}: {} tensors; 4294967295 is the most", path(), all.size()));
  index_.clear();
  index_.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) index_.push_back({hash_of(all[i].name), static_cast<std::uint32_t>(i)});
  const auto key = [&](const Slot& slot) { return std::pair(slot.hash, all[slot.index].name); };
  std::sort(index_.begin(), index_.end(), [&](const Slot& a, const Slot& b) { return key(a) < key(b); });
  const auto twice =
      std::adjacent_find(index_.begin(), index_.end(), [&](const Slot& a, const Slot& b) { return key(a) == key(b); });
  if (twice != index_.end()) throw Error(fmt::format("{}: two tensors are named {:?}", path(), all[twice->index].name));
}

const TensorView* ModelReader::find(std::string_view name) const {
  const auto all = tensors();
  const auto wanted = std::pair(hash_of(name), name);
  const auto at = std::lower_bound(index_.begin(), index_.end(), wanted, [&](const Slot& slot, const auto& value) {
    return std::pair(slot.hash, all[slot.index].name) < value;
  });
  if (at == index_.end() || at->hash != wanted.first || all[at->index].name != name) return nullptr;
  return &all[at->index];
}

std::unique_ptr<ModelReader> open_model(const std::string& path) {
  constexpr std::size_t kMagicBytes = 4;
  std::string found;
  {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    const std::string_view magic(reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), kMagicBytes));
    if (magic == "GGUF") return open_gguf(path);
    if (magic == "HKNT" || magic.starts_with('{')) return open_hk(path);
    found = describe_start(bytes);
  }
  throw Error(
      fmt::format("{} is no model file: {}; a .hk file begins with \"HKNT\", a .gguf file with \"GGUF\", the index "
                  "of a sharded model with \"{{\"",
                  path, found));
}

}  // namespace hk::engine
