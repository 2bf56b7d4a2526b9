// Metadata values for people: strings quoted, arrays and long texts shortened, opaque bytes as a size.
#include <fmt/format.h>

#include <algorithm>

#include "engine/container/metadata.h"
#include "engine/container/metadata_blob.h"

namespace hk::engine {
namespace {

/// Characters of a string or json text that stand for one array element when texts are shortened.
constexpr std::size_t kTextPerItem = 32;

/// Cuts at a character, never inside one.
std::string_view cut(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

std::string quoted(std::string_view text, std::size_t max_bytes) {
  const auto shown = cut(text, max_bytes);
  if (shown.size() == text.size()) return fmt::format("{:?}", text);
  return fmt::format("{:?}... ({} bytes)", shown, text.size());
}

std::string array_text(const Blob& blob, std::size_t max_items) {
  const std::size_t shown = std::min<std::size_t>(blob.count, max_items);
  std::string out = "[";
  for (std::size_t i = 0; i < shown; ++i) {
    if (i != 0) out += ", ";
    const auto* at = blob.body + 4 * i;
    switch (blob.kind) {
      case BlobKind::kStrings: {
        const auto from = load_little_endian<std::uint32_t>(at);
        const auto to = load_little_endian<std::uint32_t>(at + 4);
        out += quoted({reinterpret_cast<const char*>(blob.text()) + from, to - from}, kTextPerItem * max_items);
        break;
      }
      case BlobKind::kFloats:
        out += fmt::format("{}", load_little_endian<float>(at));
        break;
      case BlobKind::kIntegers:
        out += fmt::format("{}", load_little_endian<std::int32_t>(at));
        break;
    }
  }
  if (shown == blob.count) return out + "]";
  return out + fmt::format("{}...] ({} elements)", shown == 0 ? "" : ", ", blob.count);
}

}  // namespace

std::string Metadata::to_text(const MetadataEntry& entry, std::size_t max_items) const {
  const std::string_view text(reinterpret_cast<const char*>(entry.value.data()), entry.value.size());
  const auto max_bytes = max_items > entry.value.size() ? entry.value.size() : kTextPerItem * max_items;
  if (entry.type != ValueType::kJson)
    if (const auto problem = value_problem(entry); !problem.empty()) return fmt::format("<{}>", problem);
  switch (entry.type) {
    case ValueType::kString:
      return quoted(text, max_bytes);
    case ValueType::kInt64:
      return fmt::format("{}", load_little_endian<std::int64_t>(entry.value.data()));
    case ValueType::kFloat64:
      return fmt::format("{}", load_little_endian<double>(entry.value.data()));
    case ValueType::kBool:
      return std::to_integer<int>(entry.value[0]) != 0 ? "true" : "false";
    case ValueType::kJson: {
      // Json is text already, but it may hold anything when it is broken: quote it then.
      if (const auto problem = value_problem(entry); !problem.empty()) return fmt::format("<{}>", problem);
      const auto shown = cut(text, max_bytes);
      std::string out;
      for (const char c : shown) out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // line breaks between tokens
      return shown.size() == text.size() ? out : out + fmt::format("... ({} bytes)", text.size());
    }
    case ValueType::kBytes:
      break;
  }
  Blob blob;
  if (has_blob_header(entry.value) && read_blob(entry.value, blob).empty()) return array_text(blob, max_items);
  return fmt::format("<{} bytes>", entry.value.size());
}

}  // namespace hk::engine
