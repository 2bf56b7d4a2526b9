// Metadata editor: set, remove, with and without appendix, and what a kill leaves.
#include "engine/container/metadata_edit.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/error.h"
#include "engine/container/appendix.h"
#include "engine/container/hk_reader.h"
#include "engine/container/validate.h"
#include "tests/engine/container/hk_fixtures.h"

namespace hk::engine {
namespace {

using test::error_of;

MetadataChange set_string(std::string key, std::string_view value) {
  const auto bytes = test::bytes_of(value);
  return {std::move(key), ValueType::kString, {bytes.begin(), bytes.end()}};
}
MetadataChange set_integer(std::string key, std::int64_t value) {
  MetadataChange change{std::move(key), ValueType::kInt64, std::vector<std::byte>(8)};
  std::memcpy(change.value.data(), &value, 8);
  return change;
}
MetadataChange remove(std::string key) { return {std::move(key), std::nullopt, {}}; }

class MetadataEdit : public testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path copy(const std::filesystem::path& fixture) {
    const auto path = folder_.path() / fixture.filename();
    test::copy_file(fixture, path);
    return path;
  }
  static void edit(const std::filesystem::path& path, std::vector<MetadataChange> changes) {
    remarks_ = edit_metadata(path.string(), changes);
  }
  test::TemporaryFolder folder_;
  static std::vector<std::string> remarks_;
};
std::vector<std::string> MetadataEdit::remarks_;

TEST_P(MetadataEdit, ChangesPairsAndNothingElse) {
  HK_FIXTURE(folder, "fixtures/hk");
  const auto path = copy(folder / GetParam());
  const auto records =
      read_appendix(test::read_file(path), decode_hk_header(test::read_file(path), "x").appendix_offset).records.size();
  std::vector<std::vector<float>> before;
  {
    const HkReader reader(path.string());
    for (const auto& tensor : reader.tensors()) before.push_back(test::decode(reader, tensor));
  }
  edit(path, {set_string("general.name", "new name"), set_integer("added.key", 42), remove("a.bytes")});
  edit(path, {set_string("tokenizer.chat_template", std::string(10000, 'x'))});
  const HkReader reader(path.string());
  const auto& metadata = reader.metadata();
  EXPECT_EQ(metadata.entries().size(), 16u);
  EXPECT_EQ(metadata.entries()[1].key, "general.name");  // its place is kept
  EXPECT_EQ(metadata.string("general.name"), "new name");
  EXPECT_EQ(metadata.integer("added.key"), 42);
  EXPECT_FALSE(metadata.contains("a.bytes"));
  EXPECT_EQ(metadata.string("tokenizer.chat_template")->size(), 10000u);
  EXPECT_EQ(metadata.string(""), "empty key");
  EXPECT_EQ(metadata.integers("arr.i32.blob"), (std::vector<std::int32_t>{1, -2, 3000000}));
  ASSERT_EQ(reader.tensors().size(), before.size());
  for (std::size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(test::same_floats(before[i], test::decode(reader, reader.tensors()[i])));
  for (const auto& finding : validate(reader)) EXPECT_FALSE(finding.wrong) << finding.text;
  EXPECT_EQ(read_appendix(reader.files()[0].bytes(), reader.header().appendix_offset).records.size(), records);
  EXPECT_EQ(test::files_in(folder_.path()), 1u);
  // The appendix can still grow, and metadata change again behind it.
  append_record(path.string(), {.generation = 9, .name = "later", .target = "", .data = {}});
  edit(path, {remove("added.key")});
  const HkReader again(path.string());
  EXPECT_FALSE(again.metadata().contains("added.key"));
  EXPECT_EQ(read_appendix(again.files()[0].bytes(), again.header().appendix_offset).records.size(), records + 1);
  for (const auto& finding : validate(again)) EXPECT_FALSE(finding.wrong) << finding.text;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, MetadataEdit,
                         testing::Values("all-types.hk", "all-types-align1.hk", "sections-moved.hk", "appendix-ok.hk",
                                         "appendix-old-hash.hk"));

TEST_F(MetadataEdit, RefusesWhatIsNotSo) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types.hk");
  const auto path = copy(fixture);
  EXPECT_NE(error_of([&] { edit(path, {remove("absent")}); }).find("\"absent\""), std::string::npos);
  EXPECT_NE(error_of([&] { edit(path, {set_string("k", "\xff")}); }), "");
  EXPECT_NE(error_of([&] { edit(path, {set_string("\xff", "v")}); }), "");
  EXPECT_NE(error_of([&] { edit(path, {set_string("k", "1"), remove("k")}); }), "");
  EXPECT_NE(error_of([&] { edit(path, {set_string(std::string(70000, 'k'), "1")}); }), "");
  EXPECT_NE(error_of([&] { edit(path, {{"k", ValueType::kInt64, std::vector<std::byte>(4)}}); }), "");
  EXPECT_EQ(test::read_file(path), test::read_file(fixture));
  edit(path, {set_string("general.architecture", "none")});  // the value it has
  EXPECT_EQ(test::read_file(path), test::read_file(fixture));
}

TEST_F(MetadataEdit, AnOpenReaderKeepsItsView) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types.hk");
  const auto path = copy(fixture);
  const HkReader before(path.string());
  for (int i = 0; i < 5; ++i) edit(path, {set_integer("a.int", i)});
  EXPECT_EQ(before.metadata().integer("a.int"), -5);
  EXPECT_EQ((*before.metadata().strings("arr.strings.blob"))[0], "héllo");
  EXPECT_EQ(HkReader(path.string()).metadata().integer("a.int"), 4);
}

TEST_F(MetadataEdit, AStaleSealIsRemovedAndSaid) {
  HK_FIXTURE(fixture, "fixtures/hk/all-types-unknown-flags.hk");  // flag bits 9 and 30
  const auto path = copy(fixture);
  edit(path, {set_integer("a.int", 1)});
  EXPECT_EQ(remarks_.size(), 1u);
  EXPECT_EQ(hk_flag_names(HkReader(path.string()).header().flags), "LITTLE_ENDIAN, TILE_ALIGNED, bit 30");
}

TEST_F(MetadataEdit, ShardsAreEditedOneByOne) {
  HK_FIXTURE(folder, "fixtures/hk");
  copy(folder / "sharded-00001-of-00002.hk");
  const auto second = copy(folder / "sharded-00002-of-00002.hk");
  const auto index = copy(folder / "sharded.hk.index.json");
  edit(index, {set_integer("through.index", 1)});
  EXPECT_TRUE(remarks_.empty());
  EXPECT_EQ(HkReader(index.string()).metadata().integer("through.index"), 1);
  edit(second, {set_integer("in.second", 2)});
  EXPECT_EQ(remarks_.size(), 1u);
  EXPECT_EQ(HkReader(second.string()).metadata().integer("in.second"), 2);
  EXPECT_EQ(HkReader(second.string()).tensors().size(), 37u);
}

/// A child that edits without end is killed again and again: a whole set of values is found each time.
TEST_P(MetadataEdit, SurvivesBeingKilled) {
  HK_FIXTURE(folder, "fixtures/hk");
  const auto path = copy(folder / GetParam());
  edit(path, {set_integer("first", 0), set_integer("second", 0)});
  std::int64_t latest = 0;
  for (int round = 0; round < 25; ++round) {
    const auto child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (std::int64_t value = latest + 1;; ++value)
          edit(path, {set_integer("first", value), set_string("between", std::string(value * 37 % 9000, 'x')),
                      set_integer("second", value)});
      } catch (...) {
      }
      ::_exit(9);
    }
    ::usleep(static_cast<::useconds_t>(1000 + 900 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const HkReader reader(path.string());
    const auto first = reader.metadata().integer("first");
    EXPECT_EQ(first, reader.metadata().integer("second"));
    EXPECT_GE(*first, latest);
    for (const auto& finding : validate(reader, {.payloads = false, .progress = {}}))
      EXPECT_FALSE(finding.wrong) << finding.text;
    latest = *first;
  }
  EXPECT_GT(latest, 0);
}

}  // namespace
}  // namespace hk::engine
