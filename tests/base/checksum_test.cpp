// The checksum of base: every byte and the length count, lanes and tails alike.
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hk::test {
namespace {

TEST(Checksum, EveryByteAndTheLengthCount) {
  std::set<std::uint64_t> seen;
  std::size_t made = 0;
  for (std::size_t size = 0; size < 100; ++size) {
    std::string text(size, 'x');
    seen.insert(checksum(text));
    ++made;
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = 'y';
      seen.insert(checksum(text));
      ++made;
      text[i] = 'x';
    }
  }
  EXPECT_EQ(seen.size(), made);
  EXPECT_NE(checksum("a", 1), checksum("a", 2));
  EXPECT_EQ(checksum("abc"), checksum(std::string("abc")));
}

}  // namespace
}  // namespace hk::test
