// A second, plain reading of GGUF bytes for tests to compare the reader with: trusts the file, copies everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace hk::test {

struct WalkedPair {
  std::string key;
  std::uint32_t type = 0;          ///< GGUF value type; 9: array
  std::uint32_t element_type = 0;  ///< of an array
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
};

struct WalkedTensor {
  std::string name;
  std::vector<std::uint64_t> dims;  ///< innermost first
  std::uint32_t type = 0;
  std::uint64_t offset = 0;  ///< from the start of the file
};

struct WalkedGguf {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::vector<WalkedPair> pairs;
  std::vector<WalkedTensor> tensors;
};

class GgufWalker {
 public:
  explicit GgufWalker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  WalkedGguf walk() {
    WalkedGguf file;
    at_ = 4;
    file.version = take<std::uint32_t>();
    const auto tensors = take<std::uint64_t>();
    const auto pairs = take<std::uint64_t>();
    for (std::uint64_t i = 0; i < pairs; ++i) {
      WalkedPair pair;
      pair.key = text();
      pair.type = take<std::uint32_t>();
      if (pair.type == 9) {
        pair.element_type = take<std::uint32_t>();
        const auto count = take<std::uint64_t>();
        for (std::uint64_t k = 0; k < count; ++k) value(pair, pair.element_type);
      } else {
        value(pair, pair.type);
      }
      if (pair.key == "general.alignment") file.alignment = static_cast<std::uint64_t>(pair.integers.at(0));
      file.pairs.push_back(std::move(pair));
    }
    for (std::uint64_t i = 0; i < tensors; ++i) {
      WalkedTensor tensor;
      tensor.name = text();
      tensor.dims.resize(take<std::uint32_t>());
      for (auto& dim : tensor.dims) dim = take<std::uint64_t>();
      tensor.type = take<std::uint32_t>();
      tensor.offset = take<std::uint64_t>();
      file.tensors.push_back(std::move(tensor));
    }
    const std::uint64_t data = (at_ + file.alignment - 1) / file.alignment * file.alignment;
    for (auto& tensor : file.tensors) tensor.offset += data;
    return file;
  }

 private:
  template <typename T>
  T take() {
    if (bytes_.size() - at_ < sizeof(T)) throw std::runtime_error("GGUF test data ends early");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    const auto size = take<std::uint64_t>();
    if (size > bytes_.size() - at_) throw std::runtime_error("GGUF test data ends early");
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, size);
    at_ += size;
    return text;
  }
  void value(WalkedPair& pair, std::uint32_t type) {
    switch (type) {
      case 0:
        pair.integers.push_back(take<std::uint8_t>());
        break;
      case 1:
        pair.integers.push_back(take<std::int8_t>());
        break;
      case 2:
        pair.integers.push_back(take<std::uint16_t>());
        break;
      case 3:
        pair.integers.push_back(take<std::int16_t>());
        break;
      case 4:
        pair.integers.push_back(take<std::uint32_t>());
        break;
      case 5:
        pair.integers.push_back(take<std::int32_t>());
        break;
      case 6:
        pair.numbers.push_back(static_cast<double>(take<float>()));
        break;
      case 7:
        pair.integers.push_back(take<std::uint8_t>());
        break;
      case 8:
        pair.texts.push_back(text());
        break;
      case 10:
        pair.integers.push_back(static_cast<std::int64_t>(take<std::uint64_t>()));
        break;
      case 11:
        pair.integers.push_back(take<std::int64_t>());
        break;
      case 12:
        pair.numbers.push_back(take<double>());
        break;
      default:
        throw std::runtime_error("GGUF test data holds value type " + std::to_string(type));
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace hk::test
