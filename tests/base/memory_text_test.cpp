// Sizes of memory in sentences: no amount but nothing reads as nothing.
#include "base/memory_text.h"

#include <gtest/gtest.h>

namespace hk::test {
namespace {

TEST(MemoryText, ChoosesAUnitThatShowsSomething) {
  EXPECT_EQ(memory_text(0), "0.0 MiB");
  EXPECT_EQ(memory_text(1), "1 byte");
  EXPECT_EQ(memory_text(1023), "1023 bytes");
  EXPECT_EQ(memory_text(1024), "1 KiB");
  EXPECT_EQ(memory_text(52428), "51 KiB");
  EXPECT_EQ(memory_text(52429), "0.1 MiB");
  EXPECT_EQ(memory_text(std::uint64_t{1} << 20), "1.0 MiB");
  EXPECT_EQ(memory_text(std::uint64_t{3} << 29), "1.50 GiB");
}

}  // namespace
}  // namespace hk::test
