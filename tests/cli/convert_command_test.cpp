// hk-run convert and inspect, end to end on small files.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/container/model_reader.h"
#include "tests/support/fixtures.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/model_compare.h"
#include "tests/support/run_program.h"

namespace hk::cli {
namespace {

using nlohmann::json;
using test::GgufBuilder;
using test::hk_run;
using test::pattern_bytes;
using test::TemporaryFolder;

constexpr std::uint32_t kF32 = 0, kQ8_0 = 8;

std::vector<std::byte> small_model() {
  GgufBuilder file;
  std::vector<std::string> tokens;
  for (int i = 0; i < 40; ++i) tokens.push_back("token" + std::to_string(i));
  return file.text("general.architecture", "test")
      .text("general.description", "colour \x1b[31mred\nsecond line")
      .scalar<float>("test.epsilon", 6, 0.25f)
      .scalar<std::uint8_t>("test.flag", 7, 1)
      .texts("tokenizer.ggml.tokens", tokens)
      .array<std::int32_t>("test.list", 5, {1, -2, 3})
      .array<float>("test.floats", 6, {0.5f})
      .tensor("norm.weight", kF32, {64}, pattern_bytes(256, 1))
      .tensor("matrix.weight", kF32, {64, 3}, std::vector<std::byte>(768))
      .tensor("blocks.weight", kQ8_0, {32, 2}, pattern_bytes(68, 3))
      .build();
}

std::string in(const TemporaryFolder& folder, const std::string& name) { return (folder.path() / name).string(); }

TEST(ConvertCommand, WritesTheSameModelAndTellsOnStderr) {
  TemporaryFolder folder;
  const auto bytes = small_model();
  const auto source = folder.write("in.gguf", bytes).string();
  const auto outcome = hk_run({"convert", source, in(folder, "out.hk"), "--alignment", "4096"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("3 tensors"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("B/s"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find('\r'), std::string::npos) << "progress is for terminals";
  const auto model = engine::open_model(in(folder, "out.hk"));
  test::expect_same_model(*model, bytes, 2);
  EXPECT_EQ(model->tensors()[1].file_offset % 4096, 0u);
}

TEST(ConvertCommand, StoresAnotherTypeWithAnyNumberOfThreads) {
  TemporaryFolder folder;
  const auto source = folder.write("in.gguf", small_model()).string();
  for (const std::string threads : {"1", "3"}) {
    const auto outcome =
        hk_run({"convert", source, in(folder, threads + ".hk"), "--type", "q8_0", "--threads", threads});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("1 stored as q8_0"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(test::read_file(in(folder, "1.hk")), test::read_file(in(folder, "3.hk")));
  const auto model = engine::open_model(in(folder, "1.hk"));
  EXPECT_EQ(kernels::storage_type_name(model->find("matrix.weight")->type), "q8_0");
  EXPECT_EQ(kernels::storage_type_name(model->find("norm.weight")->type), "f32");
}

TEST(ConvertCommand, WritesShards) {
  TemporaryFolder folder;
  const auto bytes = small_model();
  const auto source = folder.write("in.gguf", bytes).string();
  const auto outcome = hk_run({"convert", source, in(folder, "out.hk"), "--shard-size", "1K"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(in(folder, "out-00002-of-00002.hk")));
  test::expect_same_model(*engine::open_model(in(folder, "out.hk.index.json")), bytes, 2);
}

TEST(ConvertCommand, FailureLeavesNothingBehind) {
  TemporaryFolder folder;
  const auto source = folder.write("in.gguf", GgufBuilder().lying_tensor("blk.0.w", 43, {128}, 0).build()).string();
  const auto outcome = hk_run({"convert", source, in(folder, "out.hk")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("'blk.0.w'"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("43"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(in(folder, "out.hk")));
}

TEST(ConvertCommand, InterruptLeavesTheOldFile) {
  TemporaryFolder folder;
  // More than a second of encoding.
  std::vector<std::byte> weights(std::size_t{4096} * 4096 * 4);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < weights.size(); i += 4) {
    state = state * 1664525 + 1013904223;
    const float value = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
    std::memcpy(weights.data() + i, &value, 4);
  }
  GgufBuilder file;
  file.tensor("matrix.weight", kF32, {4096, 4096}, weights);
  const auto source = folder.write("in.gguf", file.build()).string();
  folder.write("out.hk", pattern_bytes(100));
  test::RunOptions options;
  options.interrupt_after_ms = 200;
  const auto outcome = hk_run({"convert", source, in(folder, "out.hk"), "--type", "q4_k", "--threads", "1"}, options);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(test::read_file(in(folder, "out.hk")), pattern_bytes(100));
  const auto all = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(all), end(all)), 2) << "nothing temporary stays";
}

TEST(InspectCommand, JsonSaysWhatTheFileHolds) {
  TemporaryFolder folder;
  const auto source = folder.write("in.gguf", small_model()).string();
  ASSERT_EQ(hk_run({"convert", source, in(folder, "out.hk")}).exit_code, 0);
  for (const auto& file : {source, in(folder, "out.hk")}) {
    SCOPED_TRACE(file);
    const auto outcome = hk_run({"inspect", file, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    const auto said = json::parse(outcome.out);
    EXPECT_EQ(said["container"], file == source ? "gguf" : "hk");
    const auto& metadata = said["metadata"];
    EXPECT_EQ(metadata["general.architecture"], "test");
    EXPECT_EQ(metadata["general.description"], "colour \x1b[31mred\nsecond line");
    EXPECT_EQ(metadata["test.epsilon"], 0.25);
    EXPECT_EQ(metadata["test.flag"], true);
    EXPECT_EQ(metadata["test.list"], json({1, -2, 3}));
    EXPECT_EQ(metadata["test.floats"], json({0.5}));
    EXPECT_EQ(metadata["tokenizer.ggml.tokens"]["count"], 40);
    EXPECT_EQ(metadata["tokenizer.ggml.tokens"]["first"][7], "token7");
    ASSERT_EQ(said["tensors"].size(), 3u);
    EXPECT_EQ(said["tensors"][1]["name"], "matrix.weight");
    EXPECT_EQ(said["tensors"][1]["shape"], json({3, 64}));
    EXPECT_EQ(said["tensors"][1]["bytes"], 768);
    EXPECT_EQ(said["tensors"][2]["type"], "q8_0");
    EXPECT_EQ(said["types"]["f32"]["tensors"], 2);
    EXPECT_EQ(said["parameters"], 64 + 192 + 64);
    const auto full = json::parse(hk_run({"inspect", file, "--json", "--full"}).out);
    EXPECT_EQ(full["metadata"]["tokenizer.ggml.tokens"].size(), 40u);
    EXPECT_EQ(full["metadata"]["tokenizer.ggml.tokens"][39], "token39");
  }
}

TEST(InspectCommand, ListingIsSafeForTerminals) {
  TemporaryFolder folder;
  const auto outcome = hk_run({"inspect", folder.write("in.gguf", small_model()).string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
  for (const auto* part : {"general.architecture", "matrix.weight", "[3, 64]", "q8_0", "768", "Parameters  320",
                           "cannot be run", "'test' is not known"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
}

TEST(InspectCommand, SaysWhatTheFamilyDoesNotUse) {
  HK_FIXTURE(grok, "fixtures/models/grok-1.gguf.zst");
  TemporaryFolder folder;
  const auto file = folder.write("grok.gguf", test::read_zst(grok)).string();
  constexpr auto* kRemark = "the key 'grok.router_logit_softcapping' is not used by the grok model";
  const auto listing = hk_run({"inspect", file});
  EXPECT_NE(listing.out.find(std::string("Note        ") + kRemark), std::string::npos) << listing.out;
  EXPECT_EQ(json::parse(hk_run({"inspect", file, "--json"}).out)["remarks"], json({kRemark}));
  const auto verified = hk_run({"verify", file});
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_NE(verified.out.find(std::string("note: ") + kRemark), std::string::npos) << verified.out;
}

TEST(InspectCommand, MarksTensorsThatCannotBeUsed) {
  HK_FIXTURE(broken, "fixtures/hk/broken/storage-unknown.hk");
  const auto outcome = hk_run({"inspect", broken.string(), "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto said = json::parse(outcome.out);
  EXPECT_GE(said["problems"].get<int>(), 1);
  const auto listing = hk_run({"inspect", broken.string()});
  EXPECT_NE(listing.out.find("PROBLEM: "), std::string::npos) << listing.out;
}

/// Whatever a broken file makes of it, inspect answers: a listing (0) or a sentence (1).
TEST(InspectCommand, AnswersForEveryBrokenFixture) {
  HK_FIXTURE(broken, "fixtures/hk/broken");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(broken)) {
    if (entry.path().extension() != ".hk") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto outcome = hk_run({"inspect", entry.path().string(), "--json", "--full"});
    EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 1) << outcome.exit_code << outcome.err;
    if (outcome.exit_code == 0) {
      EXPECT_TRUE(json::accept(outcome.out));
    } else {
      EXPECT_TRUE(outcome.err.starts_with("hk-run: ")) << outcome.err;
    }
    ++files;
  }
  EXPECT_GE(files, 1);
}

}  // namespace
}  // namespace hk::cli
