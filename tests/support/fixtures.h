// Where the shared reference data lies, and what a test does when it is absent: skip loudly, or fail when
// HK_REQUIRE_FIXTURES is set (continuous integration sets it).
#pragma once

#include <gtest/gtest.h>
#if !defined(HK_NO_ZSTD)
#include <zstd.h>
#endif

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/places.h"

namespace hk::test {

/// HK_SHARED, else the folder `shared` beside the source tree.
inline std::filesystem::path shared_root() {
  if (const char* forced = std::getenv("HK_SHARED")) return forced;
  return std::filesystem::path(source_root()) / ".." / "shared";
}

/// Reference data that is copied into the repository (tests/data), so that tests mean something without `shared`.
inline std::filesystem::path repository_data() { return std::filesystem::path(source_root()) / "tests" / "data"; }

/// `shared/<relative>`, or the copy in tests/data/<last components> when only that exists; empty when neither does.
inline std::filesystem::path find_data(const std::string& relative) {
  const auto shared = shared_root() / relative;
  if (std::filesystem::exists(shared)) return shared;
  const auto copy = repository_data() / relative;
  if (std::filesystem::exists(copy)) return copy;
  return {};
}

inline std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("test data cannot be opened: " + path.string());
  std::vector<char> text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

template <typename T>
std::vector<T> read_array(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

/// Whole content of a .zst file.
inline std::vector<std::byte> read_zst(const std::filesystem::path& path) {
#if defined(HK_NO_ZSTD)
  throw std::runtime_error("this test program cannot unpack " + path.string());
#else
  const auto packed = read_file(path);
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR)
    throw std::runtime_error("no content size in " + path.string());
  std::vector<std::byte> out(size);
  if (ZSTD_isError(ZSTD_decompress(out.data(), out.size(), packed.data(), packed.size())))
    throw std::runtime_error("cannot unpack " + path.string());
  return out;
#endif
}

/// A folder that disappears with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hk-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const std::string& name, std::span<const std::byte> bytes) const {
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace hk::test

/// Declares `variable`, a path, for shared/<relative>; skips the test loudly (or fails it) when the data is absent.
#define HK_FIXTURE(variable, relative)                                                                         \
  const std::filesystem::path variable = ::hk::test::find_data(relative);                                      \
  if (variable.empty()) {                                                                                      \
    if (std::getenv("HK_REQUIRE_FIXTURES") != nullptr) FAIL() << "required fixture is absent: " << (relative); \
    std::cerr << "\n*** SKIPPED, reference data absent: " << ::hk::test::shared_root() / (relative)            \
              << " (set HK_SHARED) ***\n\n";                                                                   \
    GTEST_SKIP() << "reference data absent: " << (relative);                                                   \
  }
