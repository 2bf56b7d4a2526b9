// HkReader on the container fixtures: every type decoded, every layout of the file, shards, flags.
#include "engine/container/hk_reader.h"

#include <set>

#include "base/error.h"
#include "engine/container/validate.h"
#include "tests/engine/container/hk_fixtures.h"

namespace hk::engine {
namespace {

using test::decode;
using test::error_of;
using test::same_floats;

/// Compares every tensor that the fixtures know the values of; returns how many.
std::size_t compare_expected(const ModelReader& reader, const std::filesystem::path& expected) {
  std::size_t compared = 0;
  for (const auto& tensor : reader.tensors()) {
    EXPECT_EQ(tensor.problem, "");
    const auto values = expected / (std::string(tensor.name) + ".f32");
    if (!std::filesystem::exists(values)) {
      ADD_FAILURE() << "no expected values for " << tensor.name;
      continue;
    }
    EXPECT_TRUE(same_floats(test::read_array<float>(values), decode(reader, tensor))) << tensor.name;
    const auto with_residual = expected / (std::string(tensor.name) + ".with_residual.f32");
    EXPECT_EQ(std::filesystem::exists(with_residual), !tensor.residual.empty()) << tensor.name;
    if (!tensor.residual.empty()) {
      EXPECT_TRUE(same_floats(test::read_array<float>(with_residual), decode(reader, tensor, true))) << tensor.name;
    }
    ++compared;
  }
  return compared;
}

void check_metadata(const ModelReader& reader) {
  const auto& metadata = reader.metadata();
  EXPECT_EQ(metadata.entries().size(), 15u);
  EXPECT_EQ(metadata.string("general.architecture"), "none");
  EXPECT_EQ(metadata.string("general.name"), "container test ✓");
  EXPECT_EQ(metadata.integer("a.int"), -5);
  EXPECT_EQ(metadata.number("a.float"), 0.1);
  EXPECT_EQ(metadata.boolean("a.true"), true);
  EXPECT_EQ(metadata.find("a.bytes")->value.size(), 256u);
  EXPECT_FALSE(metadata.is_array("a.bytes"));
  EXPECT_EQ(metadata.string(""), "empty key");
  for (const auto* key : {"arr.strings.blob", "arr.strings.json"}) {
    const auto strings = metadata.strings(key);
    ASSERT_EQ(strings->size(), 3u);
    EXPECT_EQ((*strings)[0], "héllo");
    EXPECT_EQ((*strings)[1], "");
    EXPECT_EQ((*strings)[2], "a\nb");
  }
  for (const auto* key : {"arr.i32.blob", "arr.i32.json"})
    EXPECT_EQ(metadata.integers(key), (std::vector<std::int32_t>{1, -2, 3000000}));
  for (const auto* key : {"arr.f32.blob", "arr.f32.json"})
    EXPECT_EQ(metadata.floats(key), (std::vector<float>{0.5f, 1.0f, -2.25f}));
}

class WholeFile : public testing::TestWithParam<const char*> {};

TEST_P(WholeFile, DecodesBitForBit) {
  HK_FIXTURE(folder, "fixtures/hk");
  const auto reader = open_model((folder / GetParam()).string());
  EXPECT_EQ(reader->container(), "hk");
  EXPECT_EQ(reader->tensors().size(), 39u);
  EXPECT_EQ(compare_expected(*reader, folder / "expected"), 39u);
  check_metadata(*reader);
  for (const auto& finding : validate(*reader)) EXPECT_FALSE(finding.wrong) << finding.text;
  for (const auto& tensor : reader->tensors()) EXPECT_EQ(reader->find(tensor.name), &tensor);
  EXPECT_EQ(reader->find("absent"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, WholeFile,
                         testing::Values("all-types.hk", "all-types-align1.hk", "all-types-align64.hk",
                                         "all-types-align4096.hk", "all-types-align16384.hk",
                                         "all-types-unknown-flags.hk", "sections-moved.hk", "appendix-ok.hk",
                                         "appendix-old-hash.hk"));

TEST(HkReader, UnknownFlagsAreARemark) {
  HK_FIXTURE(path, "fixtures/hk/all-types-unknown-flags.hk");
  const HkReader reader(path.string());
  ASSERT_EQ(reader.remarks().size(), 1u);
  EXPECT_NE(reader.remarks()[0].find("bit 9, bit 30"), std::string::npos);
  EXPECT_TRUE(reader.faults().empty());
}

TEST(HkReader, SharedReferencesLookLikeTheirTarget) {
  HK_FIXTURE(path, "fixtures/hk/all-types.hk");
  const HkReader reader(path.string());
  const auto* shared = reader.find("virtual.shared_f16");
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->type, StorageType::kF16);
  EXPECT_EQ(shared->shared_with, "dense.f16");
  EXPECT_EQ(shared->data.data(), reader.find("dense.f16")->data.data());
  EXPECT_EQ(reader.find("virtual.null")->type, StorageType::kNullRef);
}

TEST(HkReader, HeaderIsAccessible) {
  HK_FIXTURE(path, "fixtures/hk/all-types-align64.hk");
  const HkReader reader(path.string());
  EXPECT_EQ(reader.header().alignment, 64);
  EXPECT_EQ(reader.header().tensor_count, 39u);
  EXPECT_EQ(hk_flag_names(reader.header().flags), "LITTLE_ENDIAN, FLEXIBLE_ALIGNMENT");
  EXPECT_EQ(reader.mapped_bytes(), std::filesystem::file_size(path));
  EXPECT_EQ(decode_hk_header(encode_hk_header(reader.header()), "copy").tensor_toc_size,
            reader.header().tensor_toc_size);
}

TEST(HkReader, AnyMemberOpensTheSet) {
  HK_FIXTURE(folder, "fixtures/hk");
  for (const auto* name : {"sharded-00001-of-00002.hk", "sharded-00002-of-00002.hk", "sharded.hk.index.json"}) {
    const HkReader reader((folder / name).string());
    EXPECT_EQ(reader.tensors().size(), 37u) << name;
    EXPECT_EQ(reader.files().size(), 2u) << name;
    EXPECT_EQ(compare_expected(reader, folder / "expected"), 37u) << name;
    check_metadata(reader);
    EXPECT_TRUE(reader.index_problems().empty()) << name;
    EXPECT_EQ(reader.tensors()[0].shard, 0u);
    EXPECT_EQ(reader.tensors()[36].shard, 1u);
    for (const auto& finding : validate(reader)) EXPECT_FALSE(finding.wrong) << finding.text;
  }
  const HkReader alone((folder / "sharded-00002-of-00002.hk").string(), HkReader::Members::kThisFile);
  EXPECT_EQ(alone.tensors().size(), 18u);
}

class ShardsTest : public testing::Test {
 protected:
  void copy(const std::filesystem::path& fixtures) {
    for (const auto* name : {"sharded-00001-of-00002.hk", "sharded-00002-of-00002.hk", "sharded.hk.index.json"})
      test::copy_file(fixtures / name, folder_.path() / name);
  }
  std::string error(const std::string& name) {
    return error_of([&] { HkReader reader((folder_.path() / name).string()); });
  }
  test::TemporaryFolder folder_;
};

TEST_F(ShardsTest, AMissingMemberIsNamed) {
  HK_FIXTURE(fixtures, "fixtures/hk");
  copy(fixtures);
  std::filesystem::remove(folder_.path() / "sharded-00002-of-00002.hk");
  for (const auto* name : {"sharded-00001-of-00002.hk", "sharded.hk.index.json"})
    EXPECT_NE(error(name).find("sharded-00002-of-00002.hk"), std::string::npos) << error(name);
}

TEST_F(ShardsTest, MembersThatContradictAreRefused) {
  HK_FIXTURE(fixtures, "fixtures/hk");
  copy(fixtures);
  test::copy_file(fixtures / "sharded-00001-of-00002.hk", folder_.path() / "other.hk");
  EXPECT_NE(error("other.hk").find("should be named"), std::string::npos);
  test::copy_file(fixtures / "sharded-00001-of-00002.hk", folder_.path() / "sharded-00002-of-00002.hk");
  EXPECT_NE(error("sharded-00001-of-00002.hk"), "");
  test::copy_file(fixtures / "all-types.hk", folder_.path() / "sharded-00002-of-00002.hk");
  EXPECT_NE(error("sharded-00001-of-00002.hk"), "");
}

TEST_F(ShardsTest, IndexThatLiesIsToldByVerify) {
  HK_FIXTURE(fixtures, "fixtures/hk");
  copy(fixtures);
  const auto index = [&](std::string_view text) {
    folder_.write("set.hk.index.json", test::bytes_of(text));
    return (folder_.path() / "set.hk.index.json").string();
  };
  const HkReader reader(
      index(R"({"weight_map": {"dense.f32": "sharded-00002-of-00002.hk", "none": "sharded-00001-of-00002.hk"}})"));
  EXPECT_EQ(reader.index_problems().size(), 2u + 36u);  // one elsewhere, one unknown, the others not named
  for (const auto* text : {"{", "{}", "{\"weight_map\": 1}", "{\"weight_map\": {}}", "{\"weight_map\": {\"a\": 1}}",
                           "{\"weight_map\": {\"a\": \"../x.hk\"}}", "{\"weight_map\": {\"a\": \"gone.hk\"}}"})
    EXPECT_NE(error_of([&] { HkReader broken(index(text)); }), "") << text;
}

TEST(OpenModel, SaysWhatAFileIs) {
  const test::TemporaryFolder folder;
  for (const auto* text : {"", "x", "PK\x03\x04", "HKN"}) {
    const auto path = folder.write("file", test::bytes_of(std::string_view(text))).string();
    EXPECT_NE(error_of([&] { open_model(path); }).find(path), std::string::npos) << text;
  }
  EXPECT_NE(error_of([&] { open_model((folder.path() / "absent").string()); }), "");
  EXPECT_NE(error_of([&] { open_model(folder.path().string()); }), "");
}

}  // namespace
}  // namespace hk::engine
