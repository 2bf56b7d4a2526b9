// Appending to the appendix and rolling it back; appendix.h says how each stays whole when interrupted.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "engine/container/appendix.h"
#include "engine/container/hk_edit.h"
#include "engine/container/metadata_blob.h"

namespace hk::engine {
namespace {

/// The unit in which a write becomes visible as a whole; pages are at least this large everywhere.
constexpr std::uint64_t kPageBytes = 4096;

void append_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

std::vector<std::byte> encode_record(const NewRecord& record, const Sha256& parent) {
  std::vector<std::byte> out;
  append_little_endian(out, static_cast<std::uint8_t>(record.type));
  append_little_endian(out, record.flags);
  append_little_endian(out, static_cast<std::uint16_t>(record.name.size()));
  append_little_endian(out, record.generation);
  append_little_endian(out, record.timestamp);
  append_bytes(out, parent);
  for (const float metric : record.metrics) append_little_endian(out, metric);
  append_little_endian(out, static_cast<std::uint16_t>(record.target.size()));
  append_little_endian(out, std::uint16_t{0});  // reserved
  append_little_endian(out, std::uint32_t{0});  // data_crc32, always 0
  append_little_endian(out, static_cast<std::uint64_t>(record.data.size()));
  append_bytes(out, std::as_bytes(std::span(record.name)));
  append_bytes(out, std::as_bytes(std::span(record.target)));
  append_bytes(out, record.data);
  out.resize(align_up_8(out.size()));
  return out;
}

void check(const std::string& path, const NewRecord& record) {
  constexpr std::size_t kMostText = std::numeric_limits<std::uint16_t>::max();
  for (const auto* text : {&record.name, &record.target})
    if (text->size() > kMostText)
      throw Error(fmt::format("{}: a record's {} of {} bytes cannot be stored; {} is the most", path,
                              text == &record.name ? "name" : "target", text->size(), kMostText));
}

}  // namespace

void append_record(const std::string& path, const NewRecord& record) {
  check(path, record);
  HkEdit edit(path);
  edit.require_appendix_last();
  auto header = edit.header();
  const auto appendix = read_appendix(edit.file().bytes(), header.appendix_offset);
  if (!appendix.problem.empty())
    throw Error(fmt::format("{}: {}; roll back to the last good generation before appending", path, appendix.problem));
  const auto parent = appendix.records.empty() ? Sha256{} : appendix.records.back().lineage_hash();
  const auto bytes = encode_record(record, parent);
  const auto old_size = edit.size();
  const auto offset = align_up_8(old_size);

  if (appendix.records.empty()) {
    if (header.appendix_offset != 0) {  // an appendix of no records at the file's end: growing would publish bit by bit
      header.appendix_offset = 0;
      edit.write_header(header);
    }
    edit.append(offset, bytes);
    header.appendix_offset = offset;
    header.flags |= kHkHasAppendix;
    edit.write_header(header);
    return;
  }
  const auto end = offset + bytes.size();
  if (old_size / kPageBytes == (end - 1) / kPageBytes) {
    std::vector<std::byte> with_padding(offset - old_size);
    append_bytes(with_padding, bytes);
    edit.append(old_size, with_padding);
    return;
  }
  AtomicFile copy(edit.file().path());
  copy.reserve(end);
  edit.copy_to(copy, 0, old_size, 0);
  copy.write(offset, bytes);
  copy.sync();
  copy.commit();
}

std::size_t roll_back(const std::string& path, std::uint32_t generation) {
  HkEdit edit(path);
  edit.require_appendix_last();
  auto header = edit.header();
  const auto appendix = read_appendix(edit.file().bytes(), header.appendix_offset);
  const auto& records = appendix.records;
  const auto above = [&](const AppendixRecord& record) { return record.generation > generation; };
  const auto first = std::find_if(records.begin(), records.end(), above);
  const auto kept = std::find_if_not(first, records.end(), above);
  if (kept != records.end())
    throw Error(fmt::format(
        "{}: appendix record {} (generation {}) follows record {} (generation {}); dropping the one "
        "would leave the other without its parent",
        path, kept - records.begin() + 1, kept->generation, first - records.begin() + 1, first->generation));
  const auto dropped = static_cast<std::size_t>(records.end() - first);
  if (dropped == 0 && appendix.problem.empty()) return 0;
  if (first == records.begin()) {
    const auto start = header.appendix_offset;
    header.appendix_offset = 0;
    header.flags &= ~static_cast<std::uint32_t>(kHkHasAppendix);
    edit.write_header(header);
    edit.truncate(start);
  } else {
    edit.truncate(std::min(edit.size(), align_up_8(std::prev(first)->end())));
  }
  return dropped;
}

}  // namespace hk::engine
