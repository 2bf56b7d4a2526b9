// Small helpers of the .hk tests: the fixture folder, decoding, and a model to write.
#pragma once

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/container/hk_reader.h"
#include "engine/container/hk_writer.h"
#include "tests/support/fixtures.h"

namespace hk::test {

inline std::vector<float> decode(const engine::ModelReader& reader, const engine::TensorView& tensor,
                                 bool residual = false) {
  std::vector<float> out(tensor.elements());
  engine::dequantize_to_f32(reader, tensor, residual, out);
  return out;
}

/// Bit for bit, except that any NaN is any other.
inline testing::AssertionResult same_floats(const std::vector<float>& expected, const std::vector<float>& found) {
  if (expected.size() != found.size())
    return testing::AssertionFailure() << expected.size() << " values expected, " << found.size() << " found";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(found[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i]) != std::bit_cast<std::uint32_t>(found[i]))
      return testing::AssertionFailure() << "value " << i << ": " << expected[i] << " expected, " << found[i]
                                         << " found";
  }
  return testing::AssertionSuccess();
}

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

inline void copy_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::permissions(to, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

/// Files in a folder, for "nothing was left behind".
inline std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

/// The sentence of the hk::Error that `work` throws; "" when it throws none.
template <typename Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace hk::test
