// Reads the little-endian fields of a GGUF file one after another and refuses to step past its end.
//
// Layer: engine/container. Every read names what it reads, so that a file which stops short is told as a sentence.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"

namespace hk::engine {

static_assert(std::endian::native == std::endian::little, "model files are little-endian and read in place");

class GgufCursor {
 public:
  GgufCursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  std::size_t position() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  const std::string& file() const { return file_; }

  /// The next `size` bytes, in place.
  std::span<const std::byte> take(std::uint64_t size, std::string_view what) {
    if (size > left())
      throw Error(fmt::format("{}: {} at byte {} needs {} bytes, but the file ends after {} more", file_, what, at_,
                              size, left()));
    const auto part = bytes_.subspan(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return part;
  }

  template <typename T>
  T number(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  /// Length (u64), then the bytes.
  std::string_view string(std::string_view what) {
    const auto size = number<std::uint64_t>(what);
    const auto text = take(size, what);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace hk::engine
