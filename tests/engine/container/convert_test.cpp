// Conversion: what is read from the .hk file is what was in the source, bit for bit, or what its encoder says.
#include "engine/container/convert.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/container/gguf_reader.h"
#include "tests/support/fixtures.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/model_compare.h"

namespace hk::engine {
namespace {

using test::GgufBuilder;
using test::pattern_bytes;
using test::TemporaryFolder;

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8;
constexpr std::size_t kSourceKeys = 2;  // hk.source.format, hk.source.gguf_version

std::string in(const TemporaryFolder& folder, const std::string& name) { return (folder.path() / name).string(); }

std::size_t files_in(const TemporaryFolder& folder) {
  const auto all = std::filesystem::directory_iterator(folder.path());
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// Converts GGUF bytes and expects the .hk file to say the same.
void expect_converts(const TemporaryFolder& folder, const std::vector<std::byte>& bytes,
                     const ConvertOptions& options) {
  const auto source = open_gguf(folder.write("in.gguf", bytes).string());
  const auto result = convert_model(*source, in(folder, "out.hk"), options);
  ASSERT_EQ(result.files.size(), 1u);
  EXPECT_EQ(result.bytes, std::filesystem::file_size(result.files[0]));
  EXPECT_EQ(result.reencoded, 0u);
  EXPECT_TRUE(result.notes.empty());
  const auto model = open_model(result.files[0]);
  EXPECT_EQ(model->container(), "hk");
  test::expect_same_model(*model, bytes, kSourceKeys);
  EXPECT_EQ(model->metadata().string("hk.source.format"), "gguf");
  EXPECT_EQ(model->metadata().integer("hk.source.gguf_version"), test::GgufWalker(bytes).walk().version);
  for (const auto& tensor : model->tensors()) EXPECT_EQ(tensor.file_offset % options.alignment, 0u) << tensor.name;
}

std::vector<std::byte> floats(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::byte> bytes(count * 4);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = normal(random);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

GgufBuilder small_model() {
  GgufBuilder file;
  file.text("general.architecture", "test")
      .u32("test.block_count", 2)
      .scalar<float>("test.epsilon", 6, 1e-5f)
      .texts("tokenizer.ggml.tokens", {"a", "", "\xff", "äö"})
      .array<float>("tokenizer.ggml.scores", 6, {0.5f, -1, 2, 3})
      .tensor("odd", kF32, {5}, pattern_bytes(20, 1))
      .tensor("half", kF16, {3, 7}, pattern_bytes(42, 2))
      .tensor("blocks", kQ4_0, {64, 3}, pattern_bytes(108, 3))
      .tensor("cube", kQ8_0, {32, 2, 3}, pattern_bytes(204, 4));
  return file;
}

TEST(Convert, KeepsEverythingAtEveryAlignment) {
  TemporaryFolder folder;
  for (const std::uint32_t version : {2u, 3u}) {
    auto file = small_model();
    file.version = version;
    for (const std::uint32_t alignment : {1u, 8u, 64u, 128u, 4096u, 16384u}) {
      ConvertOptions options;
      options.alignment = alignment;
      expect_converts(folder, file.build(), options);
    }
  }
}

TEST(Convert, RefusesAlignmentsTheHeaderCannotHold) {
  TemporaryFolder folder;
  const auto source = open_gguf(folder.write("in.gguf", small_model().build()).string());
  for (const std::uint32_t alignment : {0u, 65536u}) {
    ConvertOptions options;
    options.alignment = alignment;
    EXPECT_THROW(convert_model(*source, in(folder, "out.hk"), options), Error);
  }
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(Convert, EmptyModel) {
  TemporaryFolder folder;
  expect_converts(folder, GgufBuilder().build(), {});
}

TEST(Convert, SourceKeysOfTheFileGiveWay) {
  TemporaryFolder folder;
  auto file = small_model();
  file.text("hk.source.format", "something else");
  const auto source = open_gguf(folder.write("in.gguf", file.build()).string());
  convert_model(*source, in(folder, "out.hk"), {});
  EXPECT_EQ(open_model(in(folder, "out.hk"))->metadata().string("hk.source.format"), "gguf");
}

TEST(Convert, JoinsSplits) {
  TemporaryFolder folder;
  for (std::uint16_t i = 0; i < 3; ++i) {
    GgufBuilder part;
    if (i == 0) part.text("general.architecture", "test").u32("test.block_count", 7);
    part.scalar<std::uint16_t>("split.no", 2, i).scalar<std::uint16_t>("split.count", 2, 3);
    part.tensor("tensor." + std::to_string(i), kF32, {5}, pattern_bytes(20, i + 1u));
    folder.write("m-0000" + std::to_string(i + 1) + "-of-00003.gguf", part.build());
  }
  const auto source = open_gguf(in(folder, "m-00002-of-00003.gguf"));
  convert_model(*source, in(folder, "out.hk"), {});
  const auto model = open_model(in(folder, "out.hk"));
  ASSERT_EQ(model->tensors().size(), 3u);
  EXPECT_EQ(model->metadata().integer("test.block_count"), 7);
  EXPECT_FALSE(model->metadata().contains("split.no"));
  EXPECT_FALSE(model->metadata().contains("split.count"));
  for (std::uint16_t i = 0; i < 3; ++i) {
    const auto* tensor = model->find("tensor." + std::to_string(i));
    ASSERT_NE(tensor, nullptr);
    const auto expected = pattern_bytes(20, i + 1u);
    ASSERT_EQ(tensor->data.size(), expected.size());
    EXPECT_EQ(std::memcmp(tensor->data.data(), expected.data(), expected.size()), 0);
  }
}

TEST(Convert, WritesShardsThatOpenAsOneModel) {
  TemporaryFolder folder;
  const auto bytes = small_model().build();
  const auto source = open_gguf(folder.write("in.gguf", bytes).string());
  ConvertOptions options;
  options.shard_bytes = 128;  // 20 + 42 | 108 | 204: a tensor larger than a shard gets its own
  const auto result = convert_model(*source, in(folder, "out.hk"), options);
  ASSERT_EQ(result.files.size(), 4u);
  EXPECT_EQ(result.files[0], in(folder, "out-00001-of-00003.hk"));
  EXPECT_EQ(result.files[3], in(folder, "out.hk.index.json"));
  for (const auto& file : result.files) {
    SCOPED_TRACE(file);
    const auto model = open_model(file);
    test::expect_same_model(*model, bytes, kSourceKeys);
  }
  const auto index = test::read_file(result.files[3]);
  const auto map = nlohmann::json::parse(reinterpret_cast<const char*>(index.data()),
                                         reinterpret_cast<const char*>(index.data()) + index.size())["weight_map"];
  EXPECT_EQ(map["half"], "out-00001-of-00003.hk");
  EXPECT_EQ(map["cube"], "out-00003-of-00003.hk");
  EXPECT_EQ(map.size(), 4u);

  // Shards to one file again, and one file where everything fits.
  convert_model(*open_model(result.files[1]), in(folder, "joined.hk"), {});
  test::expect_same_model(*open_model(in(folder, "joined.hk")), bytes, kSourceKeys);
  options.shard_bytes = 1 << 20;
  EXPECT_EQ(convert_model(*source, in(folder, "whole.hk"), options).files, std::vector{in(folder, "whole.hk")});
}

TEST(Convert, TellsProgressAndStopsWithoutATrace) {
  TemporaryFolder folder;
  const auto source = open_gguf(folder.write("in.gguf", small_model().build()).string());
  std::uint64_t last = 0, total = 0;
  int calls = 0;
  ConvertOptions options;
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_GE(done, last);
    last = done;
    total = all;
    ++calls;
  };
  convert_model(*source, in(folder, "out.hk"), options);
  EXPECT_EQ(total, 20u + 42 + 108 + 204);
  EXPECT_EQ(last, total);
  EXPECT_EQ(calls, 5);
  const auto before = test::read_file(in(folder, "out.hk"));

  options.alignment = 4096;
  options.progress = [](std::uint64_t done, std::uint64_t) {
    if (done > 60) throw Error("interrupted", ErrorKind::kInterrupted);
  };
  EXPECT_THROW(convert_model(*source, in(folder, "out.hk"), options), Error);
  EXPECT_THROW(convert_model(*source, in(folder, "new.hk"), options), Error);
  EXPECT_EQ(test::read_file(in(folder, "out.hk")), before);
  EXPECT_EQ(files_in(folder), 2u);  // in.gguf and the old out.hk
}

TEST(Convert, OntoItself) {
  TemporaryFolder folder;
  const auto bytes = small_model().build();
  convert_model(*open_gguf(folder.write("in.gguf", bytes).string()), in(folder, "out.hk"), {});
  ConvertOptions options;
  options.alignment = 4096;
  convert_model(*open_model(in(folder, "out.hk")), in(folder, "out.hk"), options);
  test::expect_same_model(*open_model(in(folder, "out.hk")), bytes, kSourceKeys);
}

TEST(Convert, RefusesPlacesThatCannotBeWritten) {
  TemporaryFolder folder;
  const auto source = open_gguf(folder.write("in.gguf", small_model().build()).string());
  EXPECT_THROW(convert_model(*source, in(folder, "no/such/folder/out.hk"), {}), Error);
  EXPECT_THROW(convert_model(*source, folder.path().string(), {}), Error);
}

// --- storing weights as another type ---

/// Matrices of normal numbers with names and shapes that decide what happens to them.
GgufBuilder float_model() {
  GgufBuilder file;
  file.text("general.architecture", "test").u32("general.file_type", 0);
  file.tensor("token_embd.weight", kF32, {512, 33}, floats(512 * 33, 1))
      .tensor("blk.0.attn_q.weight", kF32, {288, 5}, floats(288 * 5, 2))
      .tensor("blk.0.ffn_up_exps.weight", kF32, {256, 3, 2}, floats(256 * 3 * 2, 3))
      .tensor("blk.0.odd.weight", kF32, {40, 4}, floats(160, 4))
      .tensor("blk.0.attn_norm.weight", kF32, {256}, floats(256, 5))
      .tensor("blk.0.attn_q_norm.weight", kF32, {256, 2}, floats(512, 6))
      .tensor("blk.0.ffn_gate_inp.weight", kF32, {256, 4}, floats(1024, 7))
      .tensor("blk.0.ssm_a", kF32, {32, 4}, floats(128, 8))
      .tensor("blk.0.four.weight", kF32, {32, 2, 2, 2}, floats(256, 9));
  return file;
}

struct Expected {
  const char* name;
  const char* type;
};

void expect_types(const ModelReader& model, const std::vector<Expected>& expected) {
  for (const auto& [name, type] : expected) {
    SCOPED_TRACE(name);
    const auto* tensor = model.find(name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(kernels::storage_type_name(tensor->type), type);
  }
}

/// Every tensor of `model` is the source's, or what the encoder of its type makes of the source's values.
void expect_encoded(const ModelReader& source, const ModelReader& model) {
  ASSERT_EQ(source.tensors().size(), model.tensors().size());
  for (std::size_t i = 0; i < source.tensors().size(); ++i) {
    const auto& from = source.tensors()[i];
    const auto& to = model.tensors()[i];
    SCOPED_TRACE(std::string(from.name));
    EXPECT_EQ(from.name, to.name);
    EXPECT_EQ(from.shape_text(), to.shape_text());
    EXPECT_EQ(to.problem, "");
    std::vector<std::byte> expected(from.data.begin(), from.data.end());
    if (from.type != to.type) {
      std::vector<float> values(from.elements());
      kernels::find_format(from.type)->decode(from.data.data(), values.data(), values.size());
      const auto& format = *kernels::find_format(to.type);
      expected.resize(values.size() / format.block_elements * format.block_bytes);
      format.encode(values.data(), expected.data(), values.size());
    }
    ASSERT_EQ(to.data.size(), expected.size());
    EXPECT_EQ(std::memcmp(to.data.data(), expected.data(), expected.size()), 0);
  }
}

TEST(ConvertType, StoresMatricesAsAskedAndKeepsTheRest) {
  TemporaryFolder folder;
  const auto source = open_gguf(folder.write("in.gguf", float_model().build()).string());
  ConvertOptions options;
  options.type = StorageType::kQ8_0;
  const auto result = convert_model(*source, in(folder, "out.hk"), options);
  EXPECT_EQ(result.reencoded, 3u);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("blk.0.odd.weight"), std::string::npos);
  const auto model = open_model(in(folder, "out.hk"));
  expect_types(*model, {{"token_embd.weight", "q8_0"},
                        {"blk.0.attn_q.weight", "q8_0"},
                        {"blk.0.ffn_up_exps.weight", "q8_0"},
                        {"blk.0.odd.weight", "f32"},
                        {"blk.0.attn_norm.weight", "f32"},
                        {"blk.0.attn_q_norm.weight", "f32"},
                        {"blk.0.ffn_gate_inp.weight", "f32"},
                        {"blk.0.ssm_a", "f32"},
                        {"blk.0.four.weight", "f32"}});
  expect_encoded(*source, *model);
  EXPECT_EQ(model->metadata().integer("general.file_type"), 7);
}

TEST(ConvertType, SuperBlocksFallBackForOddRowsAndSaySo) {
  TemporaryFolder folder;
  const auto source = open_gguf(folder.write("in.gguf", float_model().build()).string());
  ConvertOptions options;
  options.type = StorageType::kQ4_K;
  const auto result = convert_model(*source, in(folder, "out.hk"), options);
  const auto model = open_model(in(folder, "out.hk"));
  expect_types(*model, {{"token_embd.weight", "q4_k"},
                        {"blk.0.attn_q.weight", "q5_0"},
                        {"blk.0.ffn_up_exps.weight", "q4_k"},
                        {"blk.0.odd.weight", "f32"}});
  ASSERT_EQ(result.notes.size(), 2u);
  EXPECT_NE(result.notes[0].find("'blk.0.attn_q.weight' becomes q5_0 instead of q4_k: its rows of 288"),
            std::string::npos)
      << result.notes[0];
  EXPECT_NE(result.notes[1].find("blk.0.odd.weight"), std::string::npos);
  expect_encoded(*source, *model);
}

TEST(ConvertType, ThreadsAndPiecesDoNotChangeBytes) {
  TemporaryFolder folder;
  // Larger than one batch and no multiple of the pieces within.
  GgufBuilder file;
  file.tensor("big.weight", kF32, {256, 3001}, floats(256 * 3001, 1));
  const auto source = open_gguf(folder.write("in.gguf", file.build()).string());
  ConvertOptions options;
  options.type = StorageType::kQ4_0;
  convert_model(*source, in(folder, "one.hk"), options);
  expect_encoded(*source, *open_model(in(folder, "one.hk")));
  options.parallel = [](std::size_t count, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (std::size_t i; (i = next++) < count;) work(i);
      });
  };
  convert_model(*source, in(folder, "many.hk"), options);
  EXPECT_EQ(test::read_file(in(folder, "one.hk")), test::read_file(in(folder, "many.hk")));
}

TEST(ConvertType, SaysWhenSourceWasQuantizedAlready) {
  TemporaryFolder folder;
  GgufBuilder file;
  file.tensor("a.weight", kQ8_0, {64, 3}, pattern_bytes(204, 4))
      .tensor("b.weight", kQ4_0, {64, 3}, pattern_bytes(108, 4));
  const auto source = open_gguf(folder.write("in.gguf", file.build()).string());
  ConvertOptions options;
  options.type = StorageType::kQ4_0;
  const auto result = convert_model(*source, in(folder, "out.hk"), options);
  EXPECT_EQ(result.reencoded, 1u);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("1 matrices were quantized already"), std::string::npos);
  expect_encoded(*source, *open_model(in(folder, "out.hk")));
}

TEST(ConvertType, TargetNamesAreThoseThatCanBeWrittenAndRun) {
  EXPECT_EQ(parse_target_type("q8_0"), StorageType::kQ8_0);
  EXPECT_EQ(parse_target_type("q4_0"), StorageType::kQ4_0);
  for (const auto* name : {"", "q9_9", "null_ref", "q8_k", "int8"}) {
    try {
      parse_target_type(name);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_NE(std::string(error.what()).find("q8_0"), std::string::npos) << error.what();
    }
  }
}

// --- reference files ---

TEST(ConvertFixtures, ModelsConvertAndReadBackIdentically) {
  HK_FIXTURE(models, "fixtures/models");
  TemporaryFolder folder;
  int converted = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    const auto name = entry.path().filename().string();
    if (!name.ends_with(".gguf.zst")) continue;
    if (name.find("-q1_0") != name.npos || name.find("-q2_0") != name.npos) continue;  // stored anew: below
    SCOPED_TRACE(name);
    expect_converts(folder, test::read_zst(entry.path()), {});
    ++converted;
  }
  EXPECT_GE(converted, 1);
  std::cout << converted << " models converted\n";
}

/// Types without a number in .hk become q4_0 with the same values.
TEST(ConvertFixtures, NarrowTypesKeepTheirValues) {
  TemporaryFolder folder;
  for (const auto* name : {"q1_0", "q2_0"}) {
    SCOPED_TRACE(name);
    HK_FIXTURE(path, std::string("fixtures/models/llama-q-") + name + ".gguf.zst");
    const auto source = open_gguf(folder.write("in.gguf", test::read_zst(path)).string());
    const auto result = convert_model(*source, in(folder, "out.hk"), {});
    EXPECT_GT(result.reencoded, 0u);
    EXPECT_TRUE(result.notes.empty());
    const auto model = open_model(result.files[0]);
    std::size_t narrow = 0;
    for (const auto& before : source->tensors()) {
      const TensorView* after = model->find(before.name);
      ASSERT_NE(after, nullptr) << before.name;
      if (kernels::storage_type_name(before.type) == name) {
        EXPECT_EQ(after->type, StorageType::kQ4_0) << before.name;
        ++narrow;
      }
      std::vector<float> a(before.elements()), b(before.elements());
      kernels::find_format(before.type)->decode(before.data.data(), a.data(), a.size());
      kernels::find_format(after->type)->decode(after->data.data(), b.data(), b.size());
      EXPECT_EQ(a, b) << before.name;
    }
    EXPECT_GT(narrow, 0u);
  }
}

TEST(ConvertFixtures, VocabulariesAndWholeModelsConvert) {
  HK_FIXTURE(tokenizers, "fixtures/tokenizers");
  HK_FIXTURE(demo, "models/demo/demo-f16.gguf");
  HK_FIXTURE(stories, "models/stories260K/stories260K.gguf");
  TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(tokenizers)) {
    const auto path = entry.path() / "vocab.gguf.zst";
    if (!std::filesystem::exists(path)) continue;
    SCOPED_TRACE(path.string());
    expect_converts(folder, test::read_zst(path), {});
  }
  for (const auto& path : {demo, stories}) expect_converts(folder, test::read_file(path), {});
}

TEST(ConvertFixtures, HkOfEveryTypeIsRewrittenWithTheSameValues) {
  HK_FIXTURE(path, "fixtures/hk/all-types.hk");
  TemporaryFolder folder;
  const auto source = open_model(path.string());
  convert_model(*source, in(folder, "out.hk"), {});
  const auto copy = open_model(in(folder, "out.hk"));
  ASSERT_EQ(copy->tensors().size(), source->tensors().size());
  ASSERT_EQ(copy->metadata().entries().size(), source->metadata().entries().size());
  for (std::size_t i = 0; i < source->metadata().entries().size(); ++i) {
    const auto& from = source->metadata().entries()[i];
    const auto& to = copy->metadata().entries()[i];
    EXPECT_EQ(from.key, to.key);
    EXPECT_EQ(from.type, to.type);
    EXPECT_TRUE(std::ranges::equal(from.value, to.value)) << from.key;
  }
  for (std::size_t i = 0; i < source->tensors().size(); ++i) {
    const auto& from = source->tensors()[i];
    const auto& to = copy->tensors()[i];
    SCOPED_TRACE(std::string(from.name));
    EXPECT_EQ(from.name, to.name);
    EXPECT_EQ(from.type, to.type);
    EXPECT_EQ(from.shared_with, to.shared_with);
    EXPECT_EQ(from.problem, to.problem);
    EXPECT_EQ(from.block_size, to.block_size);
    EXPECT_EQ(from.shape_text(), to.shape_text());
    EXPECT_TRUE(std::ranges::equal(from.data, to.data));
    EXPECT_TRUE(std::ranges::equal(from.scales, to.scales));
    EXPECT_TRUE(std::ranges::equal(from.residual, to.residual));
  }
}

}  // namespace
}  // namespace hk::engine
