// The array blobs of bytes values: strings, f32 and i32 lists as HK-FORMAT-NOTES.md lays them out.
//
// Layer: engine/container. Checks a blob once so that it can be read in place afterwards, and builds blobs for writers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

enum class BlobKind : std::uint8_t { kStrings = 1, kFloats = 2, kIntegers = 3 };

inline constexpr std::size_t kBlobHeaderBytes = 8;  // u8 kind, u8[3] zero, u32 count

/// Numbers of the containers are little-endian and lie at any address.
template <typename T>
T load_little_endian(const std::byte* at) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                "files are read in place; a big-endian host needs swaps here");
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

template <typename T>
void append_little_endian(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(value));
}

/// One checked blob.
struct Blob {
  BlobKind kind = BlobKind::kStrings;
  std::uint32_t count = 0;
  const std::byte* body = nullptr;  ///< kStrings: the offsets; else the values

  const std::byte* text() const { return body + 4 * (std::size_t{count} + 1); }  ///< kStrings: the first string's byte
};

/// Reads a blob and checks everything about it, offsets included. Returns "" or what is wrong with it.
std::string read_blob(std::span<const std::byte> value, Blob& blob);

/// Could this be a blob at all: a known kind, zero filler? Opaque bytes usually are not.
bool has_blob_header(std::span<const std::byte> value);

std::vector<std::byte> make_blob(std::span<const std::string_view> strings);
std::vector<std::byte> make_blob(std::span<const float> values);
std::vector<std::byte> make_blob(std::span<const std::int32_t> values);

}  // namespace hk::engine
