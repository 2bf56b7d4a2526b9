// A mapped file that shrinks while it is read: the program says so and ends. In a child, since it ends.
#include "engine/container/mapping_guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "engine/container/mapped_file.h"
#include "tests/support/fixtures.h"

namespace hk::engine {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

std::string make_file(const test::TemporaryFolder& folder, const std::string& name) {
  const auto path = (folder.path() / name).string();
  std::ofstream(path, std::ios::binary) << std::string(kBytes, 'w');
  return path;
}

int touch_last(std::span<const std::byte> bytes) {
  return std::to_integer<int>(*static_cast<const volatile std::byte*>(bytes.data() + bytes.size() - 1));
}

TEST(MappingGuardDeathTest, AShortenedFileIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const test::TemporaryFolder folder;
  const auto path = make_file(folder, "model.hk");
  EXPECT_EXIT(
      {
        install_mapping_guard("a test");
        const MappedFile other(make_file(folder, "other.hk"));
        MappedFile file(path);
        const MappedFile moved(std::move(file));
        std::filesystem::resize_file(path, 4096);
        ::_exit(touch_last(moved.bytes()));
      },
      testing::ExitedWithCode(1), "a test: .*model.hk: the file can no longer be read");
}

TEST(MappingGuardDeathTest, OtherBusErrorsEndAsBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        install_mapping_guard("a test");
        ::raise(SIGBUS);
      },
      testing::KilledBySignal(SIGBUS), "^$");
}

TEST(MappingGuard, MappingsComeAndGo) {
  const test::TemporaryFolder folder;
  const auto path = make_file(folder, "model.hk");
  for (int i = 0; i < 10000; ++i) {  // more than there are places at one time
    const MappedFile file(path);
    ASSERT_EQ(file.bytes().size(), kBytes);
  }
  unguard_mapping(nullptr);
  guard_mapping({}, "nothing");
}

}  // namespace
}  // namespace hk::engine
