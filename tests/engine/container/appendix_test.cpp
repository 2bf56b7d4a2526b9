// Appendix: records as written, both hashes, appending and rolling back, and what a kill leaves.
#include "engine/container/appendix.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "engine/container/hk_edit.h"
#include "engine/container/hk_reader.h"
#include "engine/container/validate.h"
#include "tests/engine/container/hk_fixtures.h"

namespace hk::engine {
namespace {

using test::error_of;

struct Opened {
  explicit Opened(const std::filesystem::path& path) : reader(path.string()) {
    appendix = read_appendix(reader.files()[0].bytes(), reader.header().appendix_offset);
    links = check_lineage(appendix);
  }
  bool intact() const {
    return appendix.problem.empty() && !appendix.padding_missing &&
           std::find(links.begin(), links.end(), Link::kBroken) == links.end();
  }
  HkReader reader;
  Appendix appendix;
  std::vector<Link> links;
};

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256({test::bytes_of("a"), test::bytes_of("bc")})),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Appendix, ReadsTheFixture) {
  HK_FIXTURE(folder, "fixtures/hk");
  const Opened ok(folder / "appendix-ok.hk");
  ASSERT_EQ(ok.appendix.records.size(), 4u);
  EXPECT_EQ(ok.links, (std::vector<Link>{Link::kFirst, Link::kValid, Link::kValid, Link::kValid}));
  const auto& record = ok.appendix.records[0];
  EXPECT_EQ(record.type, AppendixType::kLoraAdapter);
  EXPECT_EQ(record.name, "lora-a");
  EXPECT_EQ(record.target, "blk.0.attn_q.weight");
  EXPECT_EQ(record.generation, 1u);
  EXPECT_EQ(record.timestamp, 1700000001u);
  EXPECT_EQ(record.metrics, (std::array<float, 4>{0.5f, 0.25f, 0.125f, 2.0f}));
  EXPECT_EQ(record.data.size(), 11u);
  EXPECT_EQ(ok.appendix.records[3].name, "tête");
  const Opened old(folder / "appendix-old-hash.hk");
  EXPECT_EQ(old.links, (std::vector<Link>{Link::kFirst, Link::kOld, Link::kOld, Link::kOld}));
  const Opened tampered(folder / "appendix-tampered.hk");
  EXPECT_EQ(tampered.links, (std::vector<Link>{Link::kFirst, Link::kValid, Link::kValid, Link::kBroken}));
  const Opened missing(folder / "appendix-missing-middle.hk");
  EXPECT_EQ(missing.links, (std::vector<Link>{Link::kFirst, Link::kBroken, Link::kValid}));
}

class AppendixEdit : public testing::Test {
 protected:
  std::filesystem::path copy(const std::filesystem::path& fixture) {
    const auto path = folder_.path() / "model.hk";
    test::copy_file(fixture, path);
    return path;
  }
  static NewRecord record(std::uint32_t generation, std::span<const std::byte> data) {
    NewRecord record;
    record.type = AppendixType::kCodeEval;
    record.generation = generation;
    record.timestamp = 1700000000;
    record.metrics = {1, 2, 3, 4};
    record.name = "n" + std::to_string(generation);
    record.target = "t";
    record.data = data;
    return record;
  }
  test::TemporaryFolder folder_;
};

TEST_F(AppendixEdit, GrowsFromNothing) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types.hk");
  const auto path = copy(fixture);
  const auto before = test::read_file(path);
  // Sizes around the padding and around pages: both ways of publishing a record are taken.
  const std::size_t sizes[] = {0, 1, 7, 8, 9, 100, 1000, 4000, 5000, 100000, 3};
  std::vector<std::vector<std::byte>> datas;
  for (std::uint32_t i = 0; i < std::size(sizes); ++i) {
    datas.emplace_back(sizes[i], std::byte(i + 1));
    append_record(path.string(), record(i + 1, datas.back()));
    const Opened opened(path);
    ASSERT_TRUE(opened.intact());
    ASSERT_EQ(opened.appendix.records.size(), i + 1);
    EXPECT_TRUE(opened.reader.header().flags & kHkHasAppendix);
    EXPECT_EQ(opened.reader.header().appendix_offset % 8, 0u);
    const auto& last = opened.appendix.records.back();
    EXPECT_EQ(last.offset % 8, 0u);
    EXPECT_EQ(last.name, "n" + std::to_string(i + 1));
    EXPECT_EQ(last.metrics, (std::array<float, 4>{1, 2, 3, 4}));
    EXPECT_TRUE(std::equal(last.data.begin(), last.data.end(), datas.back().begin(), datas.back().end()));
    for (const auto& finding : validate(opened.reader)) EXPECT_FALSE(finding.wrong) << finding.text;
  }
  // Nothing moved: all but the header is where it was.
  const auto after = test::read_file(path);
  EXPECT_TRUE(std::equal(before.begin() + kHkHeaderBytes, before.end(), after.begin() + kHkHeaderBytes));
  EXPECT_EQ(test::files_in(folder_.path()), 1u);
}

TEST_F(AppendixEdit, RollsBackByGeneration) {
  HK_FIXTURE(fixture, "fixtures/hk/appendix-ok.hk");
  const auto path = copy(fixture);  // generations 1, 2, 2, 3
  EXPECT_EQ(roll_back(path.string(), 3), 0u);
  EXPECT_EQ(test::read_file(path), test::read_file(fixture));
  EXPECT_EQ(roll_back(path.string(), 2), 1u);
  EXPECT_TRUE(Opened(path).intact());
  EXPECT_EQ(Opened(path).appendix.records.size(), 3u);
  EXPECT_EQ(roll_back(path.string(), 1), 2u);
  EXPECT_EQ(Opened(path).appendix.records.size(), 1u);
  append_record(path.string(), record(2, {}));
  EXPECT_TRUE(Opened(path).intact());
  EXPECT_EQ(roll_back(path.string(), 0), 2u);
  const Opened none(path);
  EXPECT_EQ(none.reader.header().appendix_offset, 0u);
  EXPECT_FALSE(none.reader.header().flags & kHkHasAppendix);
  for (const auto& finding : validate(none.reader)) EXPECT_FALSE(finding.wrong) << finding.text;
  EXPECT_EQ(roll_back(path.string(), 0), 0u);
}

TEST_F(AppendixEdit, KeepsChildrenWithTheirParents) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types.hk");
  const auto path = copy(fixture);
  append_record(path.string(), record(1, {}));
  append_record(path.string(), record(5, {}));
  append_record(path.string(), record(2, {}));
  const auto before = test::read_file(path);
  EXPECT_NE(error_of([&] { roll_back(path.string(), 3); }).find("generation 5"), std::string::npos);
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_EQ(roll_back(path.string(), 1), 2u);
}

TEST_F(AppendixEdit, DamageIsNotBuiltUpon) {
  HK_FIXTURE(fixtures, "fixtures/hk/broken");
  for (const auto* name : {"appendix-data-size-max.hk", "appendix-data-size-past.hk", "appendix-name-len.hk",
                           "appendix-header-cut.hk", "appendix-in-header.hk", "appendix_offset-max.hk"}) {
    const auto path = copy(fixtures / name);
    const auto before = test::read_file(path);
    EXPECT_NE(error_of([&] { append_record(path.string(), record(9, {})); }), "") << name;
    EXPECT_EQ(test::read_file(path), before) << name;
  }
  // A tail that was cut off goes with a roll back; then the chain can grow again.
  const auto path = copy(fixtures / ".." / "appendix-ok.hk");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);
  EXPECT_NE(Opened(path).appendix.problem, "");
  EXPECT_EQ(roll_back(path.string(), 3), 0u);
  EXPECT_EQ(Opened(path).appendix.records.size(), 3u);
  append_record(path.string(), record(3, {}));
  EXPECT_TRUE(Opened(path).intact());
  // Padding alone may be missing: the next record brings it.
  const auto unpadded = copy(fixtures / "appendix-cut.hk");
  EXPECT_TRUE(Opened(unpadded).appendix.padding_missing);
  append_record(unpadded.string(), record(4, {}));
  EXPECT_TRUE(Opened(unpadded).intact());
  EXPECT_EQ(Opened(unpadded).appendix.records.size(), 5u);
}

TEST_F(AppendixEdit, RefusesWhereTablesLieBehindTheRecords) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types.hk");
  const auto path = copy(fixture);
  auto bytes = test::read_file(path);
  auto header = decode_hk_header(bytes, "x");
  header.appendix_offset = header.tensor_data_offset;
  header.flags |= kHkHasAppendix;
  const auto encoded = encode_hk_header(header);
  std::copy(encoded.begin(), encoded.end(), bytes.begin());
  folder_.write("model.hk", bytes);
  EXPECT_NE(error_of([&] { append_record(path.string(), record(1, {})); }).find("reach to"), std::string::npos);
  EXPECT_NE(error_of([&] { roll_back(path.string(), 0); }), "");
  EXPECT_EQ(test::read_file(path), bytes);
}

/// Kills a child that appends without end, again and again; the file is whole each time.
TEST_F(AppendixEdit, SurvivesBeingKilled) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types.hk");
  const auto path = copy(fixture);
  std::size_t most = 0;
  for (int round = 0; round < 40; ++round) {
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::vector<std::byte> data(20000, std::byte{7});
      try {
        roll_back(path.string(), 2);  // what the last round left, so that generations only grow
        for (std::uint32_t i = 0;; ++i) {
          append_record(path.string(), record(i + 1, std::span(data).first(i % 2 == 0 ? 100 : data.size())));
          if (i % 5 == 4) roll_back(path.string(), 2);
        }
      } catch (...) {
      }
      ::_exit(9);  // not reached: the loop ends by the kill
    }
    ::usleep(static_cast<::useconds_t>(1000 + 700 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Opened opened(path);
    EXPECT_TRUE(opened.intact()) << round << " " << opened.appendix.problem;
    for (const auto& finding : validate(opened.reader, {.payloads = false, .progress = {}}))
      EXPECT_FALSE(finding.wrong) << round << " " << finding.text;
    most = std::max(most, opened.appendix.records.size());
  }
  EXPECT_GT(most, 0u);
}

}  // namespace
}  // namespace hk::engine
