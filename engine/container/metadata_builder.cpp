// Metadata section under construction.
#include "engine/container/metadata_builder.h"

#include <fmt/format.h>

#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/container/metadata_blob.h"

namespace hk::engine {

void MetadataBuilder::add(const MetadataEntry& entry) {
  if (entry.key.size() > std::numeric_limits<std::uint16_t>::max())
    throw Error(
        fmt::format("metadata key {:?}... has {} bytes; 65535 is the most", entry.key.substr(0, 64), entry.key.size()));
  if (entry.value.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error(fmt::format("metadata key {:?}: its value has {} bytes; 4294967295 is the most", entry.key,
                            entry.value.size()));
  if (!keys_.emplace(entry.key).second) throw Error(fmt::format("metadata key {:?} occurs twice", entry.key));
  const auto key = std::as_bytes(std::span(entry.key));
  append_little_endian(section_, static_cast<std::uint16_t>(key.size()));
  section_.insert(section_.end(), key.begin(), key.end());
  append_little_endian(section_, static_cast<std::uint8_t>(entry.type));
  append_little_endian(section_, static_cast<std::uint32_t>(entry.value.size()));
  section_.insert(section_.end(), entry.value.begin(), entry.value.end());
}

void MetadataBuilder::add_checked(std::string_view key, ValueType type, std::span<const std::byte> value) {
  if (!is_valid_utf8(key)) throw Error(fmt::format("metadata key {:?} is no valid UTF-8", key));
  const MetadataEntry entry{key, type, value};
  if (const auto problem = value_problem(entry); !problem.empty())
    throw Error(fmt::format("metadata key {:?} cannot be stored: {}", key, problem));
  add(entry);
}

void MetadataBuilder::add_string(std::string_view key, std::string_view value) {
  add_checked(key, ValueType::kString, std::as_bytes(std::span(value)));
}
void MetadataBuilder::add_integer(std::string_view key, std::int64_t value) {
  add_checked(key, ValueType::kInt64, std::as_bytes(std::span(&value, 1)));
}
void MetadataBuilder::add_number(std::string_view key, double value) {
  add_checked(key, ValueType::kFloat64, std::as_bytes(std::span(&value, 1)));
}
void MetadataBuilder::add_boolean(std::string_view key, bool value) {
  const std::byte byte{value ? std::uint8_t{1} : std::uint8_t{0}};
  add_checked(key, ValueType::kBool, std::span(&byte, 1));
}
void MetadataBuilder::add_json(std::string_view key, std::string_view text) {
  add_checked(key, ValueType::kJson, std::as_bytes(std::span(text)));
}
void MetadataBuilder::add_bytes(std::string_view key, std::span<const std::byte> value) {
  add_checked(key, ValueType::kBytes, value);
}
void MetadataBuilder::add_strings(std::string_view key, std::span<const std::string_view> values) {
  add_bytes(key, make_blob(values));
}
void MetadataBuilder::add_integers(std::string_view key, std::span<const std::int32_t> values) {
  add_bytes(key, make_blob(values));
}
void MetadataBuilder::add_floats(std::string_view key, std::span<const float> values) {
  add_bytes(key, make_blob(values));
}

}  // namespace hk::engine
