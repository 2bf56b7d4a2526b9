// A mapped file in memory of its own, ahead of its use and locked: the bytes and their addresses stay what they were.
#include "engine/container/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>

#include "base/error.h"
#include "tests/support/fixtures.h"

namespace hk::engine {
namespace {

std::string content(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 2654435761U >> 13);
  return text;
}

std::string make_file(const test::TemporaryFolder& folder, const std::string& text) {
  const auto path = (folder.path() / "model.hk").string();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

/// Sizes around pages and huge pages.
constexpr std::size_t kSizes[] = {1, 4095, 4096, 4097, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, (5 << 20) + 17};

TEST(MappedFile, LargeOnesBeginWhereHugePagesDo) {
  const test::TemporaryFolder folder;
  for (const std::size_t size : kSizes) {
    const MappedFile file(make_file(folder, content(size)));
    EXPECT_EQ(text_of(file), content(size));
    if (size >= (2 << 20)) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.bytes().data()) % (2 << 20), 0U) << size;
  }
}

TEST(MappedFile, ACopyTakesTheMappingsPlace) {
  const test::TemporaryFolder folder;
  for (const std::size_t size : kSizes) {
    const auto text = content(size);
    const auto path = make_file(folder, text);
    MappedFile file(path);
    const auto* before = file.bytes().data();
    file.begin_copy();
    constexpr std::size_t kPart = 1000003;  // no multiple of a page
    for (std::size_t at = (size - 1) / kPart * kPart;; at -= kPart) {
      file.copy_part(at, kPart);
      if (at == 0) break;
    }
    EXPECT_EQ(text_of(file), text);  // still the mapping
    MappedFile moved(std::move(file));
    moved.finish_copy();
    EXPECT_EQ(moved.bytes().data(), before);
    EXPECT_EQ(text_of(moved), text);
    std::filesystem::resize_file(path, 0);  // no longer needed
    EXPECT_EQ(text_of(moved), text);
    moved.finish_copy();  // nothing to do
  }
}

TEST(MappedFile, ACopyThatIsGivenUpLeavesTheMapping) {
  const test::TemporaryFolder folder;
  const auto text = content(3 << 20);
  MappedFile file(make_file(folder, text));
  file.begin_copy();
  file.copy_part(0, 1 << 20);
  EXPECT_EQ(text_of(file), text);
}

TEST(MappedFile, ReadAheadBringsTheFileIntoTheCache) {
  const test::TemporaryFolder folder;
  const auto text = content(8 << 20);
  const auto path = make_file(folder, text);
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  ASSERT_GE(descriptor, 0);
  ::fsync(descriptor);
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
  const MappedFile file(path);
  const double cold = file.cached_part();
  EXPECT_GE(cold, 0);
  if (cold > 0.5)
    std::cerr << "\n*** this file system keeps what it is asked to drop: read-ahead is tested warm ***\n\n";
  for (std::size_t at = 0; at < text.size(); at += 1 << 20) file.read_ahead(at + 5, 1 << 20);  // odd places
  file.read_ahead(0, 5);
  file.read_ahead(text.size() + 4096, 4096);  // beyond the end: nothing
  file.read_ahead(text.size() - 1, ~std::size_t{0});
  EXPECT_EQ(file.cached_part(), 1.0);
  EXPECT_EQ(text_of(file), text);
}

TEST(MappedFile, NothingOfNothing) {
  const test::TemporaryFolder folder;
  MappedFile file(make_file(folder, ""));
  EXPECT_EQ(file.cached_part(), 1.0);
  file.read_ahead(0, 100);
  file.lock(0, 100);
  file.begin_copy();
  file.copy_part(0, 100);
  file.finish_copy();
  EXPECT_TRUE(file.bytes().empty());
}

TEST(MappedFile, Locked) {
  const test::TemporaryFolder folder;
  const auto text = content(64 << 10);
  const MappedFile file(make_file(folder, text));
  struct rlimit limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (limit.rlim_cur < 2 * text.size()) GTEST_SKIP() << "this process may lock " << limit.rlim_cur << " bytes only";
  file.lock(0, text.size());
  EXPECT_EQ(file.cached_part(), 1.0);
  EXPECT_EQ(text_of(file), text);
}

}  // namespace
}  // namespace hk::engine
