// Builds a metadata section pair by pair.
//
// Layer: engine/container. The encoding of HK-FORMAT.md section 3. Keys are unique; what cannot be stored is refused by
// key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/container/metadata.h"

namespace hk::engine {

class MetadataBuilder {
 public:
  void add_string(std::string_view key, std::string_view value);
  void add_integer(std::string_view key, std::int64_t value);
  void add_number(std::string_view key, double value);
  void add_boolean(std::string_view key, bool value);
  void add_json(std::string_view key, std::string_view text);
  void add_bytes(std::string_view key, std::span<const std::byte> value);
  void add_strings(std::string_view key, std::span<const std::string_view> values);
  void add_integers(std::string_view key, std::span<const std::int32_t> values);
  void add_floats(std::string_view key, std::span<const float> values);
  /// An encoded pair as it is, such as one of Metadata::entries(). Only lengths are checked.
  void add(const MetadataEntry& entry);
  void add(const Metadata& metadata) {
    for (const auto& entry : metadata.entries()) add(entry);
  }

  std::uint64_t count() const { return keys_.size(); }
  std::span<const std::byte> section() const { return section_; }

 private:
  void add_checked(std::string_view key, ValueType type, std::span<const std::byte> value);

  std::vector<std::byte> section_;
  std::set<std::string, std::less<>> keys_;
};

}  // namespace hk::engine
