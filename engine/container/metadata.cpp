// Metadata getters: lookup by key, scalar conversions, arrays in both spellings.
#include "engine/container/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/metadata_json.h"

namespace hk::engine {
namespace {

std::string_view text_of(const MetadataEntry& entry) {
  return {reinterpret_cast<const char*>(entry.value.data()), entry.value.size()};
}

std::uint64_t hash_of(std::string_view key) { return std::hash<std::string_view>{}(key); }

/// 2^63: the first double that is no int64.
constexpr double kInt64End = 9223372036854775808.0;

}  // namespace

std::string_view value_type_name(ValueType type) {
  switch (type) {
    case ValueType::kString:
      return "string";
    case ValueType::kInt64:
      return "int64";
    case ValueType::kFloat64:
      return "float64";
    case ValueType::kBool:
      return "bool";
    case ValueType::kJson:
      return "json";
    case ValueType::kBytes:
      return "bytes";
  }
  return "unknown type";
}

std::string value_problem(const MetadataEntry& entry) {
  const auto size = [&](std::size_t expected) {
    return entry.value.size() == expected
               ? std::string()
               : fmt::format("{} of {} bytes instead of {}", value_type_name(entry.type), entry.value.size(), expected);
  };
  switch (entry.type) {
    case ValueType::kString: {
      const auto at = find_invalid_utf8(text_of(entry));
      return at == entry.value.size() ? "" : fmt::format("text that is no valid UTF-8 at byte {}", at);
    }
    case ValueType::kInt64:
    case ValueType::kFloat64:
      return size(8);
    case ValueType::kBool: {
      auto problem = size(1);
      if (problem.empty() && std::to_integer<int>(entry.value[0]) > 1)
        problem = fmt::format("bool of value {} instead of 0 or 1", std::to_integer<int>(entry.value[0]));
      return problem;
    }
    case ValueType::kJson: {
      const auto problem = check_json(text_of(entry));
      return problem.empty() ? "" : "unusable json: " + problem;
    }
    case ValueType::kBytes:
      return "";
  }
  return fmt::format("unknown value type 0x{:02x}", static_cast<unsigned>(entry.type));
}

void Metadata::index() {
  index_.clear();
  index_.reserve(entries_.size());
  for (std::size_t i = 0; i < entries_.size(); ++i)
    index_.emplace_back(hash_of(entries_[i].key), static_cast<std::uint32_t>(i));
  const auto key = [&](const auto& slot) { return std::pair(slot.first, entries_[slot.second].key); };
  std::sort(index_.begin(), index_.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  const auto twice =
      std::adjacent_find(index_.begin(), index_.end(), [&](const auto& a, const auto& b) { return key(a) == key(b); });
  if (twice != index_.end())
    throw Error(fmt::format("{}: metadata key {:?} occurs twice", file_, entries_[twice->second].key));
}

const MetadataEntry* Metadata::find(std::string_view key) const {
  const auto wanted = std::pair(hash_of(key), key);
  const auto at = std::lower_bound(index_.begin(), index_.end(), wanted, [&](const auto& slot, const auto& value) {
    return std::pair(slot.first, entries_[slot.second].key) < value;
  });
  if (at == index_.end() || at->first != wanted.first || entries_[at->second].key != key) return nullptr;
  return &entries_[at->second];
}

void Metadata::fail(const MetadataEntry& entry, std::string_view expected, std::string_view found) const {
  throw Error(fmt::format("{}: metadata key {:?}: {} was expected, found {}", file_, entry.key, expected,
                          found.empty() ? value_type_name(entry.type) : found));
}

const MetadataEntry* Metadata::checked(std::string_view key, std::string_view expected) const {
  const auto* entry = find(key);
  if (entry == nullptr) return nullptr;
  // Json and bytes are checked by whoever takes them apart.
  if (entry->type != ValueType::kJson)
    if (const auto problem = value_problem(*entry); !problem.empty()) fail(*entry, expected, problem);
  return entry;
}

std::optional<std::string_view> Metadata::string(std::string_view key) const {
  const auto* entry = checked(key, "a string");
  if (entry == nullptr) return std::nullopt;
  if (entry->type != ValueType::kString) fail(*entry, "a string");
  return text_of(*entry);
}

std::optional<std::int64_t> Metadata::integer(std::string_view key) const {
  constexpr std::string_view kExpected = "an integer";
  const auto* entry = checked(key, kExpected);
  if (entry == nullptr) return std::nullopt;
  if (entry->type == ValueType::kInt64) return load_little_endian<std::int64_t>(entry->value.data());
  if (entry->type == ValueType::kBool) return std::to_integer<std::int64_t>(entry->value[0]);
  if (entry->type == ValueType::kFloat64) {
    const auto value = load_little_endian<double>(entry->value.data());
    if (value >= -kInt64End && value < kInt64End && std::trunc(value) == value) return static_cast<std::int64_t>(value);
    fail(*entry, kExpected, fmt::format("the float64 {}", value));
  }
  fail(*entry, kExpected);
}

std::optional<double> Metadata::number(std::string_view key) const {
  constexpr std::string_view kExpected = "a number";
  const auto* entry = checked(key, kExpected);
  if (entry == nullptr) return std::nullopt;
  if (entry->type == ValueType::kFloat64) return load_little_endian<double>(entry->value.data());
  if (entry->type == ValueType::kInt64)
    return static_cast<double>(load_little_endian<std::int64_t>(entry->value.data()));
  fail(*entry, kExpected);
}

std::optional<bool> Metadata::boolean(std::string_view key) const {
  constexpr std::string_view kExpected = "a bool";
  const auto* entry = checked(key, kExpected);
  if (entry == nullptr) return std::nullopt;
  if (entry->type == ValueType::kBool) return std::to_integer<int>(entry->value[0]) != 0;
  if (entry->type == ValueType::kInt64) {
    const auto value = load_little_endian<std::int64_t>(entry->value.data());
    if (value == 0 || value == 1) return value == 1;
    fail(*entry, kExpected, fmt::format("the int64 {}", value));
  }
  fail(*entry, kExpected);
}

std::optional<StringArray> Metadata::strings(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of strings";
  const auto* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  StringArray array;
  auto value = entry->value;
  if (entry->type == ValueType::kJson) {
    std::vector<std::string> elements;
    const auto problem = read_json_strings(text_of(*entry), elements);
    if (!problem.empty()) fail(*entry, kExpected, "a json value: " + problem);
    const std::vector<std::string_view> views(elements.begin(), elements.end());
    array.owned_ = std::make_shared<std::vector<std::byte>>(make_blob(views));
    value = *array.owned_;
  } else if (entry->type != ValueType::kBytes) {
    fail(*entry, kExpected);
  }
  Blob blob;
  const auto problem = read_blob(value, blob);
  if (!problem.empty()) fail(*entry, kExpected, "a broken array: " + problem);
  if (blob.kind != BlobKind::kStrings) fail(*entry, kExpected, "an array of numbers");
  array.count_ = blob.count;
  array.offsets_ = blob.body;
  array.bytes_ = reinterpret_cast<const char*>(blob.text());
  return array;
}

std::optional<std::vector<std::int32_t>> Metadata::integers(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of integers";
  const auto* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  std::vector<std::int32_t> values;
  if (entry->type == ValueType::kJson) {
    const auto problem = read_json_integers(text_of(*entry), values);
    if (!problem.empty()) fail(*entry, kExpected, "a json value: " + problem);
    return values;
  }
  if (entry->type != ValueType::kBytes) fail(*entry, kExpected);
  Blob blob;
  const auto problem = read_blob(entry->value, blob);
  if (!problem.empty()) fail(*entry, kExpected, "a broken array: " + problem);
  if (blob.kind != BlobKind::kIntegers)
    fail(*entry, kExpected, blob.kind == BlobKind::kFloats ? "an array of f32" : "an array of strings");
  values.resize(blob.count);
  if (blob.count != 0) std::memcpy(values.data(), blob.body, 4 * values.size());
  return values;
}

std::optional<std::vector<float>> Metadata::floats(std::string_view key) const {
  constexpr std::string_view kExpected = "an array of numbers";
  const auto* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  std::vector<float> values;
  if (entry->type == ValueType::kJson) {
    const auto problem = read_json_floats(text_of(*entry), values);
    if (!problem.empty()) fail(*entry, kExpected, "a json value: " + problem);
    return values;
  }
  if (entry->type != ValueType::kBytes) fail(*entry, kExpected);
  Blob blob;
  const auto problem = read_blob(entry->value, blob);
  if (!problem.empty()) fail(*entry, kExpected, "a broken array: " + problem);
  if (blob.kind == BlobKind::kStrings) fail(*entry, kExpected, "an array of strings");
  values.resize(blob.count);
  if (blob.kind == BlobKind::kFloats) {
    if (blob.count != 0) std::memcpy(values.data(), blob.body, 4 * values.size());
  } else {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(load_little_endian<std::int32_t>(blob.body + 4 * i));
  }
  return values;
}

template <typename T>
std::span<const T> Metadata::numbers_in_place(std::string_view key, std::uint8_t kind) const {
  const auto* entry = find(key);
  Blob blob;
  if (entry == nullptr || entry->type != ValueType::kBytes || !read_blob(entry->value, blob).empty()) return {};
  if (static_cast<std::uint8_t>(blob.kind) != kind || reinterpret_cast<std::uintptr_t>(blob.body) % alignof(T) != 0)
    return {};
  return {reinterpret_cast<const T*>(blob.body), blob.count};
}

std::span<const float> Metadata::floats_in_place(std::string_view key) const {
  return numbers_in_place<float>(key, static_cast<std::uint8_t>(BlobKind::kFloats));
}

std::span<const std::int32_t> Metadata::integers_in_place(std::string_view key) const {
  return numbers_in_place<std::int32_t>(key, static_cast<std::uint8_t>(BlobKind::kIntegers));
}

bool Metadata::is_array(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return false;
  if (entry->type == ValueType::kJson) return first_json_character(text_of(*entry)) == '[';
  Blob blob;
  return entry->type == ValueType::kBytes && read_blob(entry->value, blob).empty();
}

std::size_t Metadata::array_size(std::string_view key) const {
  const auto* entry = find(key);
  if (entry == nullptr) return 0;
  if (entry->type == ValueType::kJson) {
    std::size_t count = 0;
    return count_json_elements(text_of(*entry), count).empty() ? count : 0;
  }
  Blob blob;
  return entry->type == ValueType::kBytes && read_blob(entry->value, blob).empty() ? blob.count : 0;
}

}  // namespace hk::engine
