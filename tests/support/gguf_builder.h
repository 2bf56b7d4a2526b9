// Writes small GGUF files for tests: any version, alignment and metadata, and fields that lie on request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hk::test {

class GgufBuilder {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  ///< of payloads; the key general.alignment is the caller's to add
  std::string magic = "GGUF";

  template <typename T>
  static void append(std::vector<std::byte>& out, T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), raw, raw + sizeof(T));
  }
  static void append_string(std::vector<std::byte>& out, std::string_view text) {
    append<std::uint64_t>(out, text.size());
    const auto* raw = reinterpret_cast<const std::byte*>(text.data());
    out.insert(out.end(), raw, raw + text.size());
  }

  /// A scalar of GGUF value type `type`.
  template <typename T>
  GgufBuilder& scalar(std::string_view key, std::uint32_t type, T value) {
    begin(key, type);
    append(pairs_, value);
    return *this;
  }
  GgufBuilder& u32(std::string_view key, std::uint32_t value) { return scalar(key, 4, value); }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    begin(key, 8);
    append_string(pairs_, value);
    return *this;
  }
  template <typename T>
  GgufBuilder& array(std::string_view key, std::uint32_t type, const std::vector<T>& values) {
    begin_array(key, type, values.size());
    for (const T value : values) append(pairs_, value);
    return *this;
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const auto& value : values) append_string(pairs_, value);
    return *this;
  }
  /// Key, type and whatever bytes the test wants to follow.
  GgufBuilder& raw_pair(std::string_view key, std::uint32_t type, std::span<const std::byte> value) {
    begin(key, type);
    pairs_.insert(pairs_.end(), value.begin(), value.end());
    return *this;
  }
  void begin_array(std::string_view key, std::uint32_t type, std::uint64_t count) {
    begin(key, 9);
    append<std::uint32_t>(pairs_, type);
    append<std::uint64_t>(pairs_, count);
  }

  /// Dimensions as GGUF lists them, innermost first.
  GgufBuilder& tensor(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& dims,
                      std::span<const std::byte> payload) {
    const auto offset = aligned(data_.size());
    data_.resize(offset);
    data_.insert(data_.end(), payload.begin(), payload.end());
    return lying_tensor(name, type, dims, offset);
  }
  /// A table entry without payload.
  GgufBuilder& lying_tensor(std::string_view name, std::uint32_t type, const std::vector<std::uint64_t>& dims,
                            std::uint64_t offset) {
    append_string(table_, name);
    append<std::uint32_t>(table_, static_cast<std::uint32_t>(dims.size()));
    for (const auto dim : dims) append(table_, dim);
    append(table_, type);
    append(table_, offset);
    ++tensors_;
    return *this;
  }

  std::vector<std::byte> build() const { return build(tensors_, pair_count_); }
  std::vector<std::byte> build(std::uint64_t tensors, std::uint64_t pairs) const {
    std::vector<std::byte> out;
    const auto* raw = reinterpret_cast<const std::byte*>(magic.data());
    out.insert(out.end(), raw, raw + magic.size());
    append(out, version);
    append(out, tensors);
    append(out, pairs);
    out.insert(out.end(), pairs_.begin(), pairs_.end());
    out.insert(out.end(), table_.begin(), table_.end());
    if (!data_.empty()) {
      out.resize(aligned(out.size()));
      out.insert(out.end(), data_.begin(), data_.end());
    }
    return out;
  }

 private:
  std::size_t aligned(std::size_t at) const {
    return static_cast<std::size_t>((at + alignment - 1) / alignment * alignment);
  }
  void begin(std::string_view key, std::uint32_t type) {
    append_string(pairs_, key);
    append(pairs_, type);
    ++pair_count_;
  }

  std::vector<std::byte> pairs_, table_, data_;
  std::uint64_t tensors_ = 0, pair_count_ = 0;
};

/// `count` bytes that differ from one another and from zero.
inline std::vector<std::byte> pattern_bytes(std::size_t count, unsigned seed = 1) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>((i * 37 + seed * 11 + i / 251) & 0xFF);
  return bytes;
}

}  // namespace hk::test
