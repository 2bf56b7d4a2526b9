// Hostile .hk files: every broken fixture is told by a sentence, and damaged bytes never do harm.
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "engine/container/appendix.h"
#include "engine/container/hk_reader.h"
#include "engine/container/validate.h"
#include "tests/engine/container/hk_fixtures.h"

namespace hk::engine {
namespace {

using test::error_of;

/// More than any fixture needs: what a decoder may be asked to allocate in these tests.
constexpr std::uint64_t kMostElements = 1u << 22;

/// Everything that verify would say; opening may be what fails.
std::vector<std::string> faults_of(const std::string& path) {
  std::vector<std::string> faults;
  try {
    const HkReader reader(path);
    for (const auto& finding : validate(reader))
      if (finding.wrong) faults.push_back(finding.text);
  } catch (const Error& error) {
    faults.push_back(error.what());
  }
  return faults;
}

/// Uses whatever the reader hands out, as programs above it would.
void use_everything(const ModelReader& reader) {
  for (const auto& entry : reader.metadata().entries()) {
    (void)reader.metadata().to_text(entry);
    (void)error_of([&] { (void)reader.metadata().strings(entry.key); });
    (void)error_of([&] { (void)reader.metadata().integers(entry.key); });
    (void)error_of([&] { (void)reader.metadata().floats(entry.key); });
    (void)error_of([&] { (void)reader.metadata().string(entry.key); });
    (void)error_of([&] { (void)reader.metadata().integer(entry.key); });
  }
  for (const auto& tensor : reader.tensors()) {
    if (tensor.elements() > kMostElements) continue;
    const auto error = error_of([&] { (void)test::decode(reader, tensor, true); });
    if (!tensor.problem.empty()) {
      EXPECT_EQ(error, tensor.problem);
    }
  }
}

TEST(BrokenHk, VerifyFindsSomethingInEveryFixture) {
  HK_FIXTURE(folder, "fixtures/hk/broken");
  std::ifstream list(folder / "why.json");
  const auto reasons = nlohmann::json::parse(list);
  EXPECT_GT(reasons.size(), 80u);
  for (const auto& [name, why] : reasons.items()) {
    SCOPED_TRACE(name + ": " + why.get<std::string>());
    const auto path = (folder / (name + ".hk")).string();
    const auto faults = faults_of(path);
    ASSERT_FALSE(faults.empty());
    EXPECT_NE(faults[0].find(path), std::string::npos) << faults[0];
    (void)error_of([&] { use_everything(HkReader(path)); });
  }
}

TEST(BrokenHk, UnknownTypesAreListedAndRefusedWhenUsed) {
  HK_FIXTURE(folder, "fixtures/hk/broken");
  const std::pair<const char*, const char*> cases[] = {
      {"storage-unknown.hk", "0x7f"}, {"tile-unknown.hk", "0x44"}, {"sparsity-unknown.hk", "0x44"}};
  for (const auto& [name, value] : cases) {
    const HkReader reader((folder / name).string());
    ASSERT_EQ(reader.tensors().size(), 1u);
    const auto error = error_of([&] { (void)test::decode(reader, reader.tensors()[0]); });
    EXPECT_NE(error.find("\"t\""), std::string::npos) << error;
    EXPECT_NE(error.find(value), std::string::npos) << error;
  }
}

class Damaged : public testing::TestWithParam<const char*> {};

TEST_P(Damaged, NeverDoesHarm) {
  HK_FIXTURE(path, std::string("fixtures/hk/") + GetParam());
  const auto original = test::read_file(path);
  const test::TemporaryFolder folder;
  constexpr int kRounds = 3000;
  std::mt19937 random(20240607);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  // Tables are where damage matters: half of the hits go to the first 4.2 KB.
  constexpr std::size_t kTables = 4190;
  int opened = 0;
  for (int round = 0; round < kRounds; ++round) {
    auto bytes = original;
    for (std::size_t hits = below(4) + 1; hits > 0; --hits) {
      const auto at = below(below(2) == 0 ? kTables : bytes.size());
      switch (below(4)) {
        case 0:
          bytes[at] ^= std::byte{1} << static_cast<int>(below(8));
          break;
        case 1:
          bytes[at] = static_cast<std::byte>(below(256));
          break;
        case 2: {  // a whole number
          const std::uint64_t values[] = {0, ~std::uint64_t{0}, std::uint64_t{1} << 63, bytes.size(), bytes.size() + 1};
          const auto value = values[below(std::size(values))];
          if (at + 8 <= bytes.size()) std::memcpy(bytes.data() + at, &value, 8);
          break;
        }
        default:
          if (below(8) == 0) bytes.resize(std::max<std::size_t>(at, kTables));
      }
    }
    if (below(16) == 0) bytes.resize(below(bytes.size()));
    const auto damaged = folder.write("damaged.hk", bytes).string();
    const auto error = error_of([&] {
      const HkReader reader(damaged);
      ++opened;
      use_everything(reader);
      (void)validate(reader);
      (void)check_lineage(read_appendix(reader.files()[0].bytes(), reader.header().appendix_offset));
    });
    if (!error.empty()) {
      EXPECT_NE(error.find("damaged"), std::string::npos) << error;
    }
  }
  EXPECT_GT(opened, kRounds / 10);  // or nothing was tested
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Damaged, testing::Values("all-types.hk", "appendix-ok.hk"));

}  // namespace
}  // namespace hk::engine
