// Metadata editor: the new section, then one step that publishes it.
#include "engine/container/metadata_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/container/hk_edit.h"
#include "engine/container/metadata_builder.h"

namespace hk::engine {
namespace {

/// Newer writers may seal a file with this flag and the header's reserved bytes (HK-FORMAT-NOTES.md, "Integrity").
constexpr std::uint32_t kSealFlag = 1u << 9;

MetadataBuilder apply(const Metadata& metadata, std::span<const MetadataChange> changes, const std::string& path) {
  std::map<std::string_view, const MetadataChange*> open;
  for (const auto& change : changes) {
    if (!open.emplace(change.key, &change).second)
      throw Error(fmt::format("{}: metadata key {:?} is to be changed twice", path, change.key));
    if (!is_valid_utf8(change.key))
      throw Error(fmt::format("{}: metadata key {:?} is no valid UTF-8", path, change.key));
    if (!change.type) {
      if (!metadata.contains(change.key)) throw Error(fmt::format("{} has no metadata key {:?}", path, change.key));
      continue;
    }
    if (const auto problem = value_problem({change.key, *change.type, change.value}); !problem.empty())
      throw Error(fmt::format("{}: metadata key {:?} cannot be set: {}", path, change.key, problem));
  }
  MetadataBuilder builder;
  for (const auto& entry : metadata.entries()) {
    const auto change = open.find(entry.key);
    if (change == open.end()) {
      builder.add(entry);
      continue;
    }
    if (change->second->type) builder.add(MetadataEntry{entry.key, *change->second->type, change->second->value});
    open.erase(change);
  }
  for (const auto& change : changes)
    if (open.contains(change.key)) builder.add(MetadataEntry{change.key, *change.type, change.value});
  return builder;
}

}  // namespace

std::vector<std::string> edit_metadata(const std::string& path, std::span<const MetadataChange> changes) {
  std::vector<std::string> remarks;
  HkEdit edit(path);
  edit.require_appendix_last();
  const auto builder = apply(edit.file().metadata, changes, path);
  const auto section = builder.section();
  auto header = edit.header();
  const auto old = edit.file().bytes().subspan(header.metadata_offset, header.metadata_size);
  if (std::equal(old.begin(), old.end(), section.begin(), section.end())) return remarks;
  if (header.shards() > 1 && header.split_index != 0)
    remarks.push_back(fmt::format("{} is shard {} of {}; readers take metadata from the first shard",
                                  edit.file().path(), header.split_index + 1, header.shards()));
  if ((header.flags & kSealFlag) != 0) {
    // The seal vouches for bytes that are about to change; a stale one would make the file look tampered with.
    header.flags &= ~kSealFlag;
    header.reserved = {};
    remarks.push_back(
        fmt::format("{}: the header's integrity seal no longer holds and was removed", edit.file().path()));
  }
  const bool has_appendix = header.appendix_offset != 0;
  const auto base = has_appendix ? header.appendix_offset : edit.size();
  header.metadata_kv_count = builder.count();
  header.metadata_offset = align_up_8(base);
  header.metadata_size = section.size();
  if (!has_appendix) {
    edit.append(header.metadata_offset, section);
    edit.write_header(header);
    return remarks;
  }
  const auto records = edit.size() - header.appendix_offset;
  const auto new_appendix = align_up_8(header.metadata_offset + section.size());
  AtomicFile copy(edit.file().path());
  copy.reserve(new_appendix + records);
  edit.copy_to(copy, 0, base, 0);
  edit.copy_to(copy, header.appendix_offset, records, new_appendix);
  header.appendix_offset = new_appendix;
  copy.write(0, encode_hk_header(header));
  copy.write(header.metadata_offset, section);
  copy.sync();
  copy.commit();
  return remarks;
}

}  // namespace hk::engine
