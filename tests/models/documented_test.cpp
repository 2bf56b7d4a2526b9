// What the documents say about families: README lists those that run, and a family is a page.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "models/open.h"
#include "tests/support/places.h"

namespace hk::test {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(Documented, ReadmeListsTheFamilies) {
  const std::string readme = text_of(std::filesystem::path(source_root()) / "README.md");
  for (const std::string_view name : models::known_architectures())
    EXPECT_NE(readme.find("`" + std::string(name) + "`"), readme.npos) << name;
}

TEST(Documented, AFamilyIsAPage) {
  constexpr std::ptrdiff_t kLines = 150;
  std::size_t families = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(source_root()) / "models/families")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".cpp" || name.starts_with("builder")) continue;
    const std::string text = text_of(entry.path());
    EXPECT_LE(std::ranges::count(text, '\n'), kLines) << name;
    ++families;
  }
  EXPECT_GT(families, 30u);
}

}  // namespace
}  // namespace hk::test
