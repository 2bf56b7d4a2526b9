// Opens .hk files: header, tables, streams, shared references, and the members of a set.
#include "engine/container/hk_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/container/hk_index.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/payload.h"

namespace hk::engine {
namespace {

/// Steps through a table and refuses to step past its end.
class TableCursor {
 public:
  TableCursor(std::span<const std::byte> table, const std::string& file, std::string_view what)
      : rest_(table), size_(table.size()), file_(file), what_(what) {}

  std::span<const std::byte> take(std::uint64_t size, std::uint64_t entry) {
    if (size > rest_.size())
      throw Error(fmt::format("{}: entry {} of the {} ends past its {} bytes", file_, entry, what_, size_));
    const auto part = rest_.first(size);
    rest_ = rest_.subspan(size);
    return part;
  }
  template <typename T>
  T number(std::uint64_t entry) {
    return load_little_endian<T>(take(sizeof(T), entry).data());
  }
  std::string_view text(std::uint64_t size, std::uint64_t entry) {
    const auto bytes = take(size, entry);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
  std::size_t size_;
  const std::string& file_;
  std::string_view what_;
};

/// A section of the file by the header's fields. Also refuses counts that cannot fit, before anything is reserved for
/// them.
std::span<const std::byte> section(const HkFile& file, std::string_view what, std::uint64_t offset, std::uint64_t size,
                                   std::uint64_t count, std::uint64_t smallest_entry) {
  const auto bytes = file.bytes();
  if (offset > bytes.size() || size > bytes.size() - offset)
    throw Error(fmt::format("{}: the {} is said to be {} bytes at {}, but the file has {}", file.path(), what, size,
                            offset, bytes.size()));
  if (count > size / smallest_entry)
    throw Error(fmt::format("{}: the {} of {} bytes cannot hold {} {}", file.path(), what, size, count,
                            count == 1 ? "entry" : "entries"));
  return bytes.subspan(offset, size);
}

/// Returns the bytes behind the last pair.
std::size_t read_metadata(HkFile& file) {
  const auto& header = file.header;
  constexpr std::uint64_t kSmallestPair = 2 + 1 + 4;
  constexpr std::string_view kWhat = "metadata";
  const auto bytes =
      section(file, kWhat, header.metadata_offset, header.metadata_size, header.metadata_kv_count, kSmallestPair);
  TableCursor cursor(bytes, file.path(), kWhat);
  file.metadata.set_file(file.path());
  for (std::uint64_t i = 0; i < header.metadata_kv_count; ++i) {
    MetadataEntry entry;
    entry.key = cursor.text(cursor.number<std::uint16_t>(i), i);
    entry.type = static_cast<ValueType>(cursor.number<std::uint8_t>(i));
    entry.value = cursor.take(cursor.number<std::uint32_t>(i), i);
    file.metadata.add(entry);
  }
  file.metadata.index();
  return cursor.left();
}

struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// One entry of the table of contents as stored.
struct TocEntry {
  TensorView view;
  Extent data, residual, scales;
};

TocEntry read_entry(TableCursor& cursor, const HkFile& file, std::uint64_t i) {
  TocEntry entry;
  auto& view = entry.view;
  view.name = cursor.text(cursor.number<std::uint16_t>(i), i);
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("{}: tensor {} of the table of contents {}", file.path(), i, why));
  };
  if (view.name.empty()) refuse("has no name");
  if (view.name.size() > kMaxNameBytes)
    refuse(fmt::format("has a name of {} bytes; {} is the most", view.name.size(), kMaxNameBytes));
  if (!is_valid_utf8(view.name)) refuse(fmt::format("has a name that is no valid UTF-8: {:?}", view.name));
  if (view.name.find('\0') != view.name.npos) refuse(fmt::format("has a NUL in its name: {:?}", view.name));
  view.type = static_cast<StorageType>(cursor.number<std::uint8_t>(i));
  view.tile_layout = static_cast<TileLayout>(cursor.number<std::uint8_t>(i));
  view.sparsity = static_cast<Sparsity>(cursor.number<std::uint8_t>(i));
  view.ndim = cursor.number<std::uint8_t>(i);
  if (view.ndim > kMaxDims)
    refuse(fmt::format("{:?} has {} dimensions; {} is the most", view.name, view.ndim, kMaxDims));
  for (std::uint32_t d = 0; d < view.ndim; ++d) view.shape[d] = cursor.number<std::uint64_t>(i);
  for (Extent* extent : {&entry.data, &entry.residual, &entry.scales}) {
    extent->offset = cursor.number<std::uint64_t>(i);
    extent->size = cursor.number<std::uint64_t>(i);
  }
  view.block_size = cursor.number<std::uint16_t>(i);
  view.sparsity_ratio = std::bit_cast<float>(cursor.number<std::uint32_t>(i));
  return entry;
}

/// Views of the three streams; "" or which of them does not lie in the file.
std::string map_streams(TocEntry& entry, const HkFile& file) {
  const auto bytes = file.bytes();
  const auto map = [&](std::string_view what, const Extent& extent, std::span<const std::byte>& out) -> std::string {
    if (extent.size == 0) return "";
    if (extent.offset > bytes.size() || extent.size > bytes.size() - extent.offset)
      return fmt::format(
          "its {} of {} bytes at {} end past the file's {} bytes; the file is cut off or its table is broken", what,
          extent.size, extent.offset, bytes.size());
    out = bytes.subspan(extent.offset, extent.size);
    return "";
  };
  entry.view.file_offset = entry.data.offset;
  for (auto problem : {map("data", entry.data, entry.view.data), map("scales", entry.scales, entry.view.scales),
                       map("residual", entry.residual, entry.view.residual)})
    if (!problem.empty()) return problem;
  return "";
}

/// Earlier entries of one file that own a payload, by its offset.
using Owners = std::unordered_map<std::uint64_t, std::size_t>;

/// Makes a shared_ref look like the tensor whose payload it shares; "" or why it cannot.
std::string resolve_shared(TocEntry& entry, const std::vector<TensorView>& tensors, const Owners& owners) {
  const auto owner = owners.find(entry.data.offset);
  if (owner == owners.end())
    return fmt::format("it is a shared_ref to the payload at {}, where no earlier tensor lies", entry.data.offset);
  const auto& target = tensors[owner->second];
  auto& view = entry.view;
  if (view.data.size() != target.data.size())
    return fmt::format("it is a shared_ref to {} bytes of {:?}, which has {}", view.data.size(), target.name,
                       target.data.size());
  view.type = target.type;
  view.tile_layout = target.tile_layout;
  view.sparsity = target.sparsity;
  view.block_size = target.block_size;
  if (view.scales.empty()) view.scales = target.scales;
  if (view.residual.empty()) view.residual = target.residual;
  view.shared_with = target.name;
  return "";
}

bool same_value(const MetadataEntry& a, const MetadataEntry& b) {
  return a.type == b.type && std::equal(a.value.begin(), a.value.end(), b.value.begin(), b.value.end());
}

}  // namespace

HkReader::HkReader(const std::string& path, Members members) : path_(path) {
  std::optional<HkIndex> index;
  if (is_hk_index(path)) {
    index = read_hk_index(path);
    open_index(*index, members);
  } else {
    open_file(path);
    if (members == Members::kAll && files_[0].header.shards() > 1) open_set(path);
  }
  for (std::uint32_t shard = 0; shard < files_.size(); ++shard) {
    note_header(files_[shard]);
    note_unused("metadata", read_metadata(files_[shard]), files_[shard]);
    read_tensors(shard);
  }
  merge_metadata();
  index_tensors();
  if (index && members == Members::kAll) compare_index(*index);
}

std::uint64_t HkReader::mapped_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files_) sum += file.bytes().size();
  return sum;
}

std::vector<MappedFile*> HkReader::mapped_files() {
  std::vector<MappedFile*> mappings;
  for (const auto& file : files_) mappings.push_back(file.mapping.get());
  return mappings;
}

void HkReader::open_file(const std::string& path) {
  HkFile file;
  file.mapping = std::make_unique<MappedFile>(path);
  file.header = decode_hk_header(file.bytes(), path);
  files_.push_back(std::move(file));
}

void HkReader::open_set(const std::string& first_path) {
  HkFile first = std::move(files_[0]);
  files_.clear();
  const auto count = first.header.shards();
  const std::filesystem::path location(first_path);
  const auto stem = hk_shard_stem(location.filename().string(), first.header.split_index, count);
  if (first.header.split_index >= count || !stem)
    throw Error(
        fmt::format("{} is shard {} of {} by its header (counted from 0), so it should be named "
                    "<stem>-<number>-of-{:05}.hk; its name says otherwise and the other shards cannot be found",
                    first_path, first.header.split_index, count, count));
  const std::uint32_t first_index = first.header.split_index;
  for (std::uint32_t index = 0; index < count; ++index) {
    if (index == first_index) {
      files_.push_back(std::move(first));
      continue;
    }
    const auto path = (location.parent_path() / hk_shard_name(*stem, index, count)).string();
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw Error(fmt::format("{} is one of {} shards; shard {} is missing: {}", first_path, count, index + 1, path));
    open_file(path);
    const auto& header = files_.back().header;
    if (header.split_index != index || header.shards() != count)
      throw Error(fmt::format("{} is shard {} of {} by its header (counted from 0); its name and {} ask for {} of {}",
                              path, header.split_index, header.shards(), first_path, index, count));
  }
}

void HkReader::open_index(const HkIndex& index, Members members) {
  const auto folder = std::filesystem::path(path_).parent_path();
  for (const auto& file : index.files) {
    const auto path = (folder / file).string();
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw Error(fmt::format("{} names {:?}, which is missing: {}", path_, file, path));
  }
  const auto first = (folder / index.files.front()).string();
  open_file(first);
  if (files_[0].header.shards() > 1) open_set(first);
  if (members == Members::kThisFile) files_.erase(files_.begin() + 1, files_.end());  // shard 0 has what is edited
}

void HkReader::compare_index(const HkIndex& index) {
  const auto name_of = [&](std::uint32_t shard) {
    return std::filesystem::path(files_[shard].path()).filename().string();
  };
  for (const auto& [tensor, file] : index.tensors) {
    const auto* view = find(tensor);
    if (view == nullptr)
      index_problems_.push_back(fmt::format("{} names tensor {:?}, which no shard has", path_, tensor));
    else if (name_of(view->shard) != file)
      index_problems_.push_back(fmt::format("{} says that tensor {:?} lies in {:?}; it lies in {}", path_, tensor, file,
                                            name_of(view->shard)));
  }
  for (const auto& view : tensors_)
    if (index.tensors.find(std::string(view.name)) == index.tensors.end())
      index_problems_.push_back(fmt::format("{} does not name tensor {:?}", path_, view.name));
}

void HkReader::read_tensors(std::uint32_t shard) {
  const auto& file = files_[shard];
  const auto& header = file.header;
  constexpr std::uint64_t kSmallestEntry = 2 + 1 + 4 + 6 * 8 + 2 + 4;
  constexpr std::string_view kWhat = "table of contents";
  const auto bytes =
      section(file, kWhat, header.tensor_toc_offset, header.tensor_toc_size, header.tensor_count, kSmallestEntry);
  TableCursor cursor(bytes, file.path(), kWhat);
  tensors_.reserve(tensors_.size() + header.tensor_count);
  Owners owners;
  for (std::uint64_t i = 0; i < header.tensor_count; ++i) {
    auto entry = read_entry(cursor, file, i);
    auto& view = entry.view;
    view.shard = shard;
    auto problem = map_streams(entry, file);
    const bool shared = view.type == StorageType::kSharedRef;
    if (problem.empty() && shared) problem = resolve_shared(entry, tensors_, owners);
    const kernels::Format* format = kernels::find_format(view.type);
    if (problem.empty() && format != nullptr && !format->in_hk)
      problem = fmt::format("its storage type 0x{:02x} is unknown", static_cast<unsigned>(view.type));
    if (problem.empty()) problem = check_sizes(view, {view.data.size(), view.scales.size(), view.residual.size()}).why;
    if (!problem.empty()) view.problem = fmt::format("{}: tensor {:?}: {}", file.path(), view.name, problem);
    const bool owns = !shared && !view.data.empty();
    if (owns && entry.data.offset < kHkHeaderBytes)
      fault(fmt::format("{}: tensor {:?}: its data at {} overlap the file header", file.path(), view.name,
                        entry.data.offset));
    if (owns) owners.emplace(entry.data.offset, tensors_.size());
    tensors_.push_back(std::move(view));
  }
  note_unused(kWhat, cursor.left(), file);
}

void HkReader::note_unused(std::string_view section_name, std::size_t bytes, const HkFile& file) {
  if (bytes == 0) return;
  remarks_.push_back(
      fmt::format("{}: {} bytes behind the last entry of the {} are not used", file.path(), bytes, section_name));
}

void HkReader::fault(std::string text) {
  remarks_.push_back(text);
  faults_.push_back(std::move(text));
}

void HkReader::note_header(const HkFile& file) {
  const auto& header = file.header;
  const auto name = file.path() + ": ";
  if ((header.flags & kHkLittleEndian) == 0)
    fault(name +
          "the header's LITTLE_ENDIAN flag is not set; the file is read as little-endian, the only order there is");
  if (const auto unknown = header.flags & ~kHkKnownFlags; unknown != 0)
    remarks_.push_back(name + fmt::format("unknown header flags are ignored: {}", hk_flag_names(unknown)));
  if (header.version_minor != 0)
    remarks_.push_back(name + fmt::format("the file is of version 1.{}, read as 1.0", header.version_minor));
  if ((header.flags & kHkHasAppendix) != 0 && header.appendix_offset == 0)
    fault(name + "the HAS_APPENDIX flag is set, but there is no appendix offset");
  if ((header.flags & kHkHasAppendix) == 0 && header.appendix_offset != 0)
    fault(name + "there is an appendix offset, but the HAS_APPENDIX flag is not set");
  if (header.appendix_offset != 0 &&
      (header.appendix_offset < kHkHeaderBytes || header.appendix_offset > file.bytes().size()))
    fault(name +
          fmt::format("the appendix offset {} lies outside the file's {} bytes or in its header; the appendix cannot "
                      "be read",
                      header.appendix_offset, file.bytes().size()));
  if ((header.flags & kHkIsSharded) == 0 && header.shards() > 1)
    fault(name + fmt::format("the header counts {} shards, but the IS_SHARDED flag is not set", header.shards()));
}

void HkReader::merge_metadata() {
  metadata_ = files_[0].metadata;
  metadata_.set_file(path_);
  // What a run needs lies in the first shard; others may repeat it or add to it.
  std::set<std::string_view> added;
  for (std::size_t i = 1; i < files_.size(); ++i)
    for (const auto& entry : files_[i].metadata.entries()) {
      const auto* first = files_[0].metadata.find(entry.key);
      if (first == nullptr) {
        if (added.insert(entry.key).second) metadata_.add(entry);
      } else if (!same_value(*first, entry)) {
        remarks_.push_back(
            fmt::format("{}: metadata key {:?} differs from the first shard's; the first shard's is used",
                        files_[i].path(), entry.key));
      }
    }
  if (!added.empty()) metadata_.index();
}

std::unique_ptr<ModelReader> open_hk(const std::string& path) { return std::make_unique<HkReader>(path); }

}  // namespace hk::engine
