// Zeroed memory: zeros from end to end, where it begins, and what is said when there is none.
#include "engine/runtime/zeroed_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/error.h"

namespace hk::test {
namespace {

using engine::ZeroedMemory;

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(ZeroedMemory, IsZeroAndCanBeWrittenToItsEnd) {
  for (const auto pages : {ZeroedMemory::Pages::kSmall, ZeroedMemory::Pages::kHuge}) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, kMiB + 64, 2 * kMiB, 5 * kMiB + 12345}) {
      ZeroedMemory memory(bytes, pages, "a test");
      ASSERT_EQ(memory.size(), bytes);
      EXPECT_TRUE(std::all_of(memory.data(), memory.data() + bytes, [](std::byte b) { return b == std::byte{0}; }));
      std::fill_n(memory.data(), bytes, std::byte{0xFF});
    }
  }
}

TEST(ZeroedMemory, BeginsWhereAsked) {
  ZeroedMemory small(100, ZeroedMemory::Pages::kSmall, "a test"), huge(100, ZeroedMemory::Pages::kHuge, "a test");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.data()) % 4096, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(huge.data()) % (2 * kMiB), 0U);
}

TEST(ZeroedMemory, NothingIsNothing) {
  ZeroedMemory memory(0, ZeroedMemory::Pages::kHuge, "a test");
  EXPECT_EQ(memory.data(), nullptr);
}

TEST(ZeroedMemory, SaysWhatCouldNotBeTaken) {
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 4}) {
    try {
      ZeroedMemory memory(bytes, ZeroedMemory::Pages::kHuge, "the moon");
      FAIL() << "that much memory was there";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kResource);
      EXPECT_EQ(std::string(error.what()),
                "not enough memory for the moon: " + std::to_string(bytes) + " bytes could not be taken");
    }
  }
}

}  // namespace
}  // namespace hk::test
