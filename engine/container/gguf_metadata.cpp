// Metadata of a GGUF file: pairs, scalar widening and array blobs.
#include "engine/container/gguf_metadata.h"

#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace hk::engine {
namespace {

/// Value type numbers of GGUF.
enum class GgufType : std::uint32_t {
  kUInt8 = 0,
  kInt8 = 1,
  kUInt16 = 2,
  kInt16 = 3,
  kUInt32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUInt64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

constexpr std::uint64_t kSmallestPair = 8 + 4 + 1;                                 // key length, type, a one-byte value
constexpr std::uint64_t kMaxKeyBytes = std::numeric_limits<std::uint16_t>::max();  // key_len of .hk is a u16
constexpr std::uint64_t kMaxValueBytes = std::numeric_limits<std::uint32_t>::max();  // value_len of .hk is a u32

// Kinds of array blobs (HK-FORMAT-NOTES.md).
constexpr std::uint8_t kStringsBlob = 1;
constexpr std::uint8_t kFloatsBlob = 2;
constexpr std::uint8_t kIntegersBlob = 3;
constexpr std::size_t kBlobHeader = 8;

/// Owner of re-encoded values: small ones share a page, arrays get their own memory. Addresses never move.
class ValueStore {
 public:
  std::span<std::byte> allocate(std::size_t size) {
    if (size > kPageBytes / 4) {
      blocks_.push_back(std::make_unique<std::uint64_t[]>((size + 7) / 8));
      return {reinterpret_cast<std::byte*>(blocks_.back().get()), size};
    }
    const std::size_t needed = (size + 7) / 8 * 8;  // every value starts 8-aligned, so numbers in blobs are aligned too
    if (needed > page_.size()) {
      blocks_.push_back(std::make_unique<std::uint64_t[]>(kPageBytes / 8));
      page_ = {reinterpret_cast<std::byte*>(blocks_.back().get()), kPageBytes};
    }
    const auto value = page_.first(size);
    page_ = page_.subspan(needed);
    return value;
  }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
  std::span<std::byte> page_;
};

class PairReader {
 public:
  PairReader(GgufCursor& cursor, ValueStore& store) : cursor_(cursor), store_(store) {}

  MetadataEntry read(std::uint64_t number) {
    const auto key = cursor_.string(fmt::format("metadata key {}", number));
    if (key.empty()) throw Error(fmt::format("{}: metadata key {} is empty", cursor_.file(), number));
    if (key.size() > kMaxKeyBytes)
      throw Error(fmt::format("{}: metadata key {} is {} bytes long; {} is the most that can be stored", cursor_.file(),
                              number, key.size(), kMaxKeyBytes));
    if (!is_valid_utf8(key) || key.find('\0') != key.npos)
      throw Error(fmt::format("{}: metadata key {} is not text (invalid UTF-8 or a NUL byte)", cursor_.file(), number));
    key_ = key;
    const auto type = cursor_.number<std::uint32_t>(about("the type of"));
    switch (static_cast<GgufType>(type)) {
      case GgufType::kUInt8:
        return integer<std::uint8_t>();
      case GgufType::kInt8:
        return integer<std::int8_t>();
      case GgufType::kUInt16:
        return integer<std::uint16_t>();
      case GgufType::kInt16:
        return integer<std::int16_t>();
      case GgufType::kUInt32:
        return integer<std::uint32_t>();
      case GgufType::kInt32:
        return integer<std::int32_t>();
      case GgufType::kUInt64:
        return integer<std::uint64_t>();
      case GgufType::kInt64:
        return integer<std::int64_t>();
      case GgufType::kFloat32:
        return {key_, ValueType::kFloat64, keep(static_cast<double>(cursor_.number<float>(about("the value of"))))};
      case GgufType::kFloat64:
        return {key_, ValueType::kFloat64, keep(cursor_.number<double>(about("the value of")))};
      case GgufType::kBool:
        return {key_, ValueType::kBool, boolean()};
      case GgufType::kString:
        return {key_, ValueType::kString, text()};
      case GgufType::kArray:
        return {key_, ValueType::kBytes, array()};
    }
    throw Error(
        fmt::format("{}: metadata key '{}' has value type {}; types 0 to 12 are known", cursor_.file(), key_, type));
  }

 private:
  std::string about(std::string_view part) const { return fmt::format("{} metadata key '{}'", part, key_); }

  template <typename T>
  std::span<const std::byte> keep(T value) {
    const auto place = store_.allocate(sizeof(T));
    std::memcpy(place.data(), &value, sizeof(T));
    return place;
  }

  template <typename T>
  MetadataEntry integer() {
    const T value = cursor_.number<T>(about("the value of"));
    if (!std::in_range<std::int64_t>(value))
      throw Error(fmt::format("{}: metadata key '{}' is {}; a .hk model holds integers up to {}", cursor_.file(), key_,
                              value, std::numeric_limits<std::int64_t>::max()));
    return {key_, ValueType::kInt64, keep(static_cast<std::int64_t>(value))};
  }

  std::span<const std::byte> boolean() {
    const auto raw = cursor_.take(1, about("the value of"));
    check_bool(raw[0]);
    return raw;
  }

  void check_bool(std::byte value) const {
    if (value != std::byte{0} && value != std::byte{1})
      throw Error(fmt::format("{}: metadata key '{}' holds {} where a bool is 0 or 1", cursor_.file(), key_,
                              std::to_integer<int>(value)));
  }

  std::span<const std::byte> text() {
    const auto value = cursor_.string(about("the value of"));
    check_size(value.size());
    if (const auto bad = find_invalid_utf8(value); bad != value.size())
      throw Error(fmt::format("{}: the text of metadata key '{}' is not valid UTF-8 at its byte {}", cursor_.file(),
                              key_, bad));
    return std::as_bytes(std::span(value.data(), value.size()));
  }

  void check_size(std::uint64_t size) const {
    if (size > kMaxValueBytes)
      throw Error(
          fmt::format("{}: the value of metadata key '{}' takes {} bytes; {} is the most that a .hk model holds",
                      cursor_.file(), key_, size, kMaxValueBytes));
  }

  std::span<const std::byte> array() {
    const auto type = cursor_.number<std::uint32_t>(about("the element type of"));
    const auto count = cursor_.number<std::uint64_t>(about("the element count of"));
    switch (static_cast<GgufType>(type)) {
      case GgufType::kUInt8:
        return integers<std::uint8_t>(count);
      case GgufType::kInt8:
        return integers<std::int8_t>(count);
      case GgufType::kUInt16:
        return integers<std::uint16_t>(count);
      case GgufType::kInt16:
        return integers<std::int16_t>(count);
      case GgufType::kUInt32:
        return integers<std::uint32_t>(count);
      case GgufType::kInt32:
        return integers<std::int32_t>(count);
      case GgufType::kUInt64:
        return integers<std::uint64_t>(count);
      case GgufType::kInt64:
        return integers<std::int64_t>(count);
      case GgufType::kBool:
        return integers<bool>(count);
      case GgufType::kFloat32: {
        const auto raw = elements(count, 4);
        const auto blob = new_blob(kFloatsBlob, count);
        if (!raw.empty()) std::memcpy(blob.data() + kBlobHeader, raw.data(), raw.size());
        return blob;
      }
      case GgufType::kString:
        return strings(count);
      case GgufType::kFloat64:
        throw Error(fmt::format("{}: metadata key '{}' is an array of float64, which a .hk model cannot hold",
                                cursor_.file(), key_));
      case GgufType::kArray:
        throw Error(fmt::format("{}: metadata key '{}' is an array of arrays, which a .hk model cannot hold",
                                cursor_.file(), key_));
    }
    throw Error(fmt::format("{}: metadata key '{}' is an array of type {}; types 0 to 12 are known", cursor_.file(),
                            key_, type));
  }

  /// Raw bytes of `count` elements; checks that the file holds them before anybody reserves memory.
  std::span<const std::byte> elements(std::uint64_t count, std::uint64_t size) {
    if (count > cursor_.left() / size)
      throw Error(
          fmt::format("{}: metadata key '{}' claims {} elements of {} bytes, but the file ends after {} more bytes",
                      cursor_.file(), key_, count, size, cursor_.left()));
    return cursor_.take(count * size, about("the elements of"));
  }

  /// A blob of `count` 4-byte elements with its header written.
  std::span<std::byte> new_blob(std::uint8_t kind, std::uint64_t count, std::uint64_t payload) {
    check_size(kBlobHeader + payload);
    const auto blob = store_.allocate(static_cast<std::size_t>(kBlobHeader + payload));
    const std::uint8_t header[4] = {kind, 0, 0, 0};
    const auto count32 = static_cast<std::uint32_t>(count);  // fits: payload holds at least one byte an element
    std::memcpy(blob.data(), header, 4);
    std::memcpy(blob.data() + 4, &count32, 4);
    return blob;
  }
  std::span<std::byte> new_blob(std::uint8_t kind, std::uint64_t count) { return new_blob(kind, count, count * 4); }

  template <typename T>
  std::span<const std::byte> integers(std::uint64_t count) {
    const auto raw = elements(count, sizeof(T));
    const auto blob = new_blob(kIntegersBlob, count);
    for (std::size_t i = 0; i < count; ++i) {
      std::int32_t narrow;
      if constexpr (std::is_same_v<T, bool>) {
        check_bool(raw[i]);
        narrow = std::to_integer<std::int32_t>(raw[i]);
      } else {
        T value;
        std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
        if (!std::in_range<std::int32_t>(value))
          throw Error(
              fmt::format("{}: element {} of metadata key '{}' is {}; a .hk model holds array integers from {} to {}",
                          cursor_.file(), i, key_, value, std::numeric_limits<std::int32_t>::min(),
                          std::numeric_limits<std::int32_t>::max()));
        narrow = static_cast<std::int32_t>(value);
      }
      std::memcpy(blob.data() + kBlobHeader + 4 * i, &narrow, 4);
    }
    return blob;
  }

  std::span<const std::byte> strings(std::uint64_t count) {
    constexpr std::uint64_t kLengthBytes = 8;
    if (count > cursor_.left() / kLengthBytes)
      throw Error(fmt::format("{}: metadata key '{}' claims {} strings, but the file ends after {} more bytes",
                              cursor_.file(), key_, count, cursor_.left()));
    // Two passes: sizes first, so that the blob is allocated once.
    GgufCursor ahead = cursor_;
    std::uint64_t total = 0;
    const std::string what = about("a string of");
    for (std::uint64_t i = 0; i < count; ++i) total += ahead.string(what).size();
    const std::uint64_t offsets = (count + 1) * 4;
    const auto blob = new_blob(kStringsBlob, count, offsets + total);
    std::byte* offset_at = blob.data() + kBlobHeader;
    std::byte* const bytes = offset_at + offsets;
    std::uint32_t end = 0;
    std::memcpy(offset_at, &end, 4);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto text = cursor_.string(what);
      if (!text.empty()) std::memcpy(bytes + end, text.data(), text.size());
      end += static_cast<std::uint32_t>(text.size());
      offset_at += 4;
      std::memcpy(offset_at, &end, 4);
    }
    return blob;
  }

  GgufCursor& cursor_;
  ValueStore& store_;
  std::string_view key_;
};

}  // namespace

Metadata read_gguf_metadata(GgufCursor& cursor, std::uint64_t count) {
  if (count > cursor.left() / kSmallestPair)
    throw Error(fmt::format("{}: the header claims {} metadata pairs, but only {} bytes follow", cursor.file(), count,
                            cursor.left()));
  Metadata metadata;
  metadata.set_file(cursor.file());
  auto store = std::make_shared<ValueStore>();
  PairReader pairs(cursor, *store);
  for (std::uint64_t i = 0; i < count; ++i) metadata.add(pairs.read(i));
  metadata.keep(std::move(store));
  metadata.index();
  return metadata;
}

}  // namespace hk::engine
