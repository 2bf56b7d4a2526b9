// Array blobs: one check for readers, three builders for writers.
#include "engine/container/metadata_blob.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"

namespace hk::engine {
namespace {

std::vector<std::byte> start_blob(BlobKind kind, std::size_t count, std::size_t body_bytes) {
  if (count > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("an array of {} elements cannot be stored; 4294967295 is the most", count));
  std::vector<std::byte> blob;
  blob.reserve(kBlobHeaderBytes + body_bytes);
  append_little_endian(blob, static_cast<std::uint32_t>(kind));
  append_little_endian(blob, static_cast<std::uint32_t>(count));
  return blob;
}

template <typename T>
std::vector<std::byte> number_blob(BlobKind kind, std::span<const T> values) {
  auto blob = start_blob(kind, values.size(), values.size_bytes());
  const auto bytes = std::as_bytes(values);
  blob.insert(blob.end(), bytes.begin(), bytes.end());
  return blob;
}

std::string check_strings(std::span<const std::byte> value, const Blob& blob) {
  const std::uint64_t body = value.size() - kBlobHeaderBytes;
  const std::uint64_t table = 4 * (std::uint64_t{blob.count} + 1);
  if (table > body)
    return fmt::format("its {} string offsets need {} bytes, {} are there", std::uint64_t{blob.count} + 1, table, body);
  const std::uint64_t text_bytes = body - table;
  std::uint32_t previous = 0;
  for (std::uint64_t i = 0; i <= blob.count; ++i) {
    const auto offset = load_little_endian<std::uint32_t>(blob.body + 4 * i);
    if (offset < previous)
      return fmt::format("string offset {} is {} after {}; offsets may not decrease", i, offset, previous);
    if (offset > text_bytes)
      return fmt::format("string offset {} is {}, past the {} bytes of text", i, offset, text_bytes);
    previous = offset;
  }
  if (load_little_endian<std::uint32_t>(blob.body) != 0) return "its first string offset is not 0";
  if (previous != text_bytes)
    return fmt::format("its last string offset is {}, the text has {} bytes", previous, text_bytes);
  return "";
}

}  // namespace

bool has_blob_header(std::span<const std::byte> value) {
  if (value.size() < 4) return false;
  const auto word = load_little_endian<std::uint32_t>(value.data());
  return word >= static_cast<std::uint32_t>(BlobKind::kStrings) &&
         word <= static_cast<std::uint32_t>(BlobKind::kIntegers);
}

std::string read_blob(std::span<const std::byte> value, Blob& blob) {
  if (value.size() < kBlobHeaderBytes)
    return fmt::format("it has {} bytes, an array begins with {}", value.size(), kBlobHeaderBytes);
  if (!has_blob_header(value))
    return fmt::format(
        "its first bytes are {:02x} {:02x} {:02x} {:02x}; an array has 1 (strings), 2 (f32) or 3 (i32) and zeros",
        std::to_integer<int>(value[0]), std::to_integer<int>(value[1]), std::to_integer<int>(value[2]),
        std::to_integer<int>(value[3]));
  blob.kind = static_cast<BlobKind>(std::to_integer<std::uint8_t>(value[0]));
  blob.count = load_little_endian<std::uint32_t>(value.data() + 4);
  blob.body = value.data() + kBlobHeaderBytes;
  if (blob.kind == BlobKind::kStrings) return check_strings(value, blob);
  const std::uint64_t needed = 4 * std::uint64_t{blob.count};
  const std::uint64_t found = value.size() - kBlobHeaderBytes;
  if (needed != found) return fmt::format("its {} numbers need {} bytes, {} are there", blob.count, needed, found);
  return "";
}

std::vector<std::byte> make_blob(std::span<const std::string_view> strings) {
  std::uint64_t text_bytes = 0;
  for (const auto& text : strings) text_bytes += text.size();
  if (text_bytes > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("an array of strings with {} bytes cannot be stored; 4294967295 is the most", text_bytes));
  auto blob = start_blob(BlobKind::kStrings, strings.size(), 4 * (strings.size() + 1) + text_bytes);
  std::uint32_t offset = 0;
  append_little_endian(blob, offset);
  for (const auto& text : strings) {
    offset += static_cast<std::uint32_t>(text.size());
    append_little_endian(blob, offset);
  }
  for (const auto& text : strings) {
    const auto bytes = std::as_bytes(std::span(text));
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  return blob;
}

std::vector<std::byte> make_blob(std::span<const float> values) { return number_blob(BlobKind::kFloats, values); }

std::vector<std::byte> make_blob(std::span<const std::int32_t> values) {
  return number_blob(BlobKind::kIntegers, values);
}

}  // namespace hk::engine
