// Typed key/value metadata with GGUF's key names: a view into the mapped file, arrays read in place.
//
// Layer: engine/container. HK-FORMAT.md section 3; array blobs and the json spelling as in HK-FORMAT-NOTES.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

enum class ValueType : std::uint8_t { kString = 1, kInt64 = 2, kFloat64 = 3, kBool = 4, kJson = 5, kBytes = 6 };
std::string_view value_type_name(ValueType type);

/// One pair. `value` is the raw encoding of the container.
struct MetadataEntry {
  std::string_view key;
  ValueType type;
  std::span<const std::byte> value;
};

/// A list of strings read in place from a blob, or owned when it came from json.
class StringArray {
 public:
  std::size_t size() const { return count_; }
  std::string_view operator[](std::size_t i) const {
    std::uint32_t from, to;
    __builtin_memcpy(&from, offsets_ + 4 * i, 4);
    __builtin_memcpy(&to, offsets_ + 4 * i + 4, 4);
    return {bytes_ + from, to - from};
  }

 private:
  friend class Metadata;
  std::size_t count_ = 0;
  const std::byte* offsets_ = nullptr;  // u32[count + 1], little-endian, unaligned
  const char* bytes_ = nullptr;
  std::shared_ptr<std::vector<std::byte>> owned_;  // json spelling: a blob built at first use
};

/// "" when the value is what its type says (length, UTF-8, json syntax), else what is wrong. Bytes are always fine.
std::string value_problem(const MetadataEntry& entry);

/// All pairs of a model in file order. Copies are cheap views; the reader that made it must outlive it.
/// Getters throw hk::Error (file, key, found and expected type) when the key exists with an unsuitable type or a broken
/// value; they return nullopt when the key is absent.
class Metadata {
 public:
  std::span<const MetadataEntry> entries() const { return entries_; }
  const MetadataEntry* find(std::string_view key) const;  ///< hashed
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;  ///< int64; a bool or whole float64 is accepted
  std::optional<double> number(std::string_view key) const;         ///< float64 or int64
  std::optional<bool> boolean(std::string_view key) const;          ///< bool, or int64 0/1
  std::optional<StringArray> strings(std::string_view key) const;   ///< blob kind 1 or a json array of strings
  std::optional<std::vector<std::int32_t>> integers(std::string_view key) const;  ///< blob kind 3, or json
  std::optional<std::vector<float>> floats(std::string_view key) const;           ///< blob kind 2 or 3, or json
  /// In-place view of a numeric blob when it is stored as one with 4-byte alignment; else empty (use the copying
  /// getters).
  std::span<const float> floats_in_place(std::string_view key) const;
  std::span<const std::int32_t> integers_in_place(std::string_view key) const;
  bool is_array(std::string_view key) const;  ///< blob or json array
  /// Number of elements of an array value, 0 when it is none.
  std::size_t array_size(std::string_view key) const;
  /// Value for people: strings quoted, arrays shortened to `max_items` elements and texts in proportion, bytes as a
  /// size.
  std::string to_text(const MetadataEntry& entry, std::size_t max_items = 8) const;

  // --- for readers ---
  void set_file(std::string file) { file_ = std::move(file); }
  void add(MetadataEntry entry) { entries_.push_back(entry); }
  /// Keeps a buffer alive that entries point into (GGUF values are re-encoded once).
  void keep(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }
  /// Builds the hash index. Throws when a key occurs twice.
  void index();

 private:
  [[noreturn]] void fail(const MetadataEntry& entry, std::string_view expected, std::string_view found = {}) const;
  const MetadataEntry* checked(std::string_view key, std::string_view expected) const;
  template <typename T>
  std::span<const T> numbers_in_place(std::string_view key, std::uint8_t kind) const;

  std::string file_;
  std::vector<MetadataEntry> entries_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> index_;
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace hk::engine
