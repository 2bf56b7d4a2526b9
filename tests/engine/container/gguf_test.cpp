// GGUF reader: values, shapes and payloads as written; everything a file can get wrong told as a sentence.
#include "engine/container/gguf_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/support/fixtures.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/model_compare.h"

namespace hk::engine {
namespace {

using test::GgufBuilder;
using test::pattern_bytes;
using test::TemporaryFolder;

constexpr std::uint32_t kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8;

std::unique_ptr<ModelReader> open_bytes(const TemporaryFolder& folder, const std::vector<std::byte>& bytes) {
  return open_gguf(folder.write("model.gguf", bytes).string());
}

/// The sentence with which opening fails; "" (and a failed test) when it does not.
std::string refusal(const TemporaryFolder& folder, const std::vector<std::byte>& bytes) {
  try {
    open_bytes(folder, bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  ADD_FAILURE() << "opened";
  return "";
}

void expect_refused(const TemporaryFolder& folder, const std::vector<std::byte>& bytes,
                    const std::vector<std::string>& fragments) {
  const auto sentence = refusal(folder, bytes);
  EXPECT_NE(sentence.find("model.gguf"), std::string::npos) << sentence;
  for (const auto& fragment : fragments) EXPECT_NE(sentence.find(fragment), std::string::npos) << sentence;
}

/// A model with every value type, odd sizes and several storage types.
GgufBuilder rich_model() {
  GgufBuilder file;
  file.text("general.architecture", "test")
      .scalar<std::uint8_t>("int.u8", 0, 255)
      .scalar<std::int8_t>("int.i8", 1, -128)
      .scalar<std::uint16_t>("int.u16", 2, 65535)
      .scalar<std::int16_t>("int.i16", 3, -32768)
      .scalar<std::uint32_t>("int.u32", 4, 4294967295u)
      .scalar<std::int32_t>("int.i32", 5, std::numeric_limits<std::int32_t>::min())
      .scalar<float>("float.f32", 6, 1e-5f)
      .scalar<std::uint8_t>("bool.yes", 7, 1)
      .scalar<std::uint8_t>("bool.no", 7, 0)
      .text("text.empty", "")
      .text("text.unicode", "Grüße, 世界 \n\t")
      .scalar<std::uint64_t>("int.u64", 10, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      .scalar<std::int64_t>("int.i64", 11, std::numeric_limits<std::int64_t>::min())
      .scalar<double>("float.f64", 12, -0.1)
      .scalar<double>("float.nan", 12, std::nan(""))
      .array<std::uint8_t>("array.u8", 0, {0, 1, 255})
      .array<std::int8_t>("array.i8", 1, {-128, 127})
      .array<std::uint16_t>("array.u16", 2, {65535})
      .array<std::int16_t>("array.i16", 3, {-32768, 5})
      .array<std::uint32_t>("array.u32", 4, {0, 2147483647})
      .array<std::int32_t>("array.i32", 5, {-2147483647 - 1, 2147483647})
      .array<float>("array.f32", 6, {1.5f, -0.0f, std::numeric_limits<float>::infinity()})
      .array<std::uint8_t>("array.bool", 7, {1, 0, 1})
      .array<std::uint64_t>("array.u64", 10, {7})
      .array<std::int64_t>("array.i64", 11, {-7, 2147483647})
      .array<std::int32_t>("array.none", 5, {})
      .texts("array.texts", {"", "a", std::string("nul\0inside", 10), "\xff\xfe raw bytes", "日本"})
      .texts("array.no-texts", {});
  return file;
}

GgufBuilder& add_tensors(GgufBuilder& file) {
  file.tensor("vector", kF32, {5}, pattern_bytes(20, 1))
      .tensor("matrix", kF16, {3, 7}, pattern_bytes(42, 2))
      .tensor("blocks.q4_0", kQ4_0, {64, 3}, pattern_bytes(108, 3))
      .tensor("cube.q8_0", kQ8_0, {32, 2, 3}, pattern_bytes(204, 4))
      .tensor("four.dims", kF32, {2, 3, 1, 2}, pattern_bytes(48, 5))
      .tensor("last", kF32, {1}, pattern_bytes(4, 6));
  return file;
}

TEST(Gguf, ReadsEveryValueTypeAndShape) {
  TemporaryFolder folder;
  for (const std::uint32_t version : {2u, 3u}) {
    auto file = rich_model();
    file.version = version;
    const auto bytes = add_tensors(file).build();
    const auto model = open_bytes(folder, bytes);
    test::expect_same_model(*model, bytes);
    EXPECT_EQ(model->container(), "gguf");
    EXPECT_EQ(dynamic_cast<const GgufReader&>(*model).version(), version);
    EXPECT_EQ(model->mapped_bytes(), bytes.size());
    EXPECT_EQ(model->find("absent"), nullptr);
    const auto* cube = model->find("cube.q8_0");
    ASSERT_NE(cube, nullptr);
    EXPECT_EQ(cube->shape_text(), "[3, 2, 32]");
    EXPECT_EQ(cube->cols(), 32u);
    EXPECT_EQ(cube->rows(), 6u);
  }
}

TEST(Gguf, NumbersInBlobsAreAlignedForReadingInPlace) {
  TemporaryFolder folder;
  const auto model = open_bytes(folder, rich_model().build());
  EXPECT_EQ(model->metadata().floats_in_place("array.f32").size(), 3u);
  EXPECT_EQ(model->metadata().integers_in_place("array.i16").size(), 2u);
}

TEST(Gguf, HonoursEveryPowerOfTwoAlignment) {
  TemporaryFolder folder;
  for (const std::uint32_t alignment : {1u, 2u, 8u, 16u, 32u, 64u, 4096u, 65536u}) {
    GgufBuilder file;
    file.alignment = alignment;
    file.text("general.architecture", "test").u32("general.alignment", alignment);
    const auto bytes = add_tensors(file).build();
    const auto model = open_bytes(folder, bytes);
    test::expect_same_model(*model, bytes);
    EXPECT_EQ(dynamic_cast<const GgufReader&>(*model).alignment(), alignment);
  }
}

TEST(Gguf, RefusesBadAlignment) {
  TemporaryFolder folder;
  for (const std::int64_t alignment : {std::int64_t{0}, std::int64_t{3}, std::int64_t{48}, std::int64_t{-32}}) {
    GgufBuilder file;
    file.scalar("general.alignment", 11, alignment);
    expect_refused(folder, add_tensors(file).build(), {"general.alignment", "power of two", std::to_string(alignment)});
  }
  GgufBuilder wrong_type;
  wrong_type.text("general.alignment", "32");
  expect_refused(folder, add_tensors(wrong_type).build(), {"general.alignment"});
  GgufBuilder huge;
  huge.scalar<std::int64_t>("general.alignment", 11, std::int64_t{1} << 62);
  expect_refused(folder, huge.lying_tensor("t", kF32, {1}, 0).build(), {"past the end"});
  GgufBuilder between;
  between.lying_tensor("t", kF32, {1}, 4);
  expect_refused(folder, between.build(), {"'t'", "alignment 32"});
}

TEST(Gguf, OpensModelsWithoutTensorsOrMetadata) {
  TemporaryFolder folder;
  const auto empty = GgufBuilder().build();
  const auto model = open_bytes(folder, empty);
  EXPECT_TRUE(model->tensors().empty());
  EXPECT_TRUE(model->metadata().entries().empty());
  GgufBuilder scalar;
  const auto bytes = scalar.tensor("scalar", kF32, {}, pattern_bytes(4)).build();
  const auto one = open_bytes(folder, bytes);
  EXPECT_EQ(one->tensors()[0].shape_text(), "[1]");
}

TEST(Gguf, RefusesOtherFilesAndVersions) {
  TemporaryFolder folder;
  expect_refused(folder, {}, {"not a GGUF file"});
  expect_refused(folder, pattern_bytes(3), {"not a GGUF file"});
  GgufBuilder other;
  other.magic = "HKNT";
  expect_refused(folder, other.build(), {"not a GGUF file", "48 4b 4e 54"});
  GgufBuilder old;
  old.version = 1;
  expect_refused(folder, old.build(), {"version 1"});
  GgufBuilder future;
  future.version = 4;
  expect_refused(folder, future.build(), {"version 4"});
  GgufBuilder none;
  none.version = 0;
  expect_refused(folder, none.build(), {"version 0"});
  GgufBuilder big_endian;
  big_endian.version = 0x03000000;
  expect_refused(folder, big_endian.build(), {"big-endian"});
  try {
    open_gguf((folder.path() / "absent.gguf").string());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("absent.gguf"), std::string::npos);
  }
  EXPECT_THROW(open_gguf(folder.path().string()), Error);
}

TEST(Gguf, RefusesValuesThatHkCannotHoldByKey) {
  TemporaryFolder folder;
  const std::uint64_t above = std::uint64_t{1} << 63;
  expect_refused(folder, GgufBuilder().scalar<std::uint64_t>("my.number", 10, above).build(),
                 {"'my.number'", "9223372036854775808"});
  expect_refused(folder, GgufBuilder().array<std::uint32_t>("my.list", 4, {1, 2147483648u}).build(),
                 {"'my.list'", "element 1", "2147483648"});
  expect_refused(folder, GgufBuilder().array<std::int64_t>("my.list", 11, {-2147483649}).build(),
                 {"'my.list'", "-2147483649"});
  expect_refused(folder, GgufBuilder().array<std::uint64_t>("my.list", 10, {above}).build(), {"'my.list'"});
  expect_refused(folder, GgufBuilder().array<double>("my.doubles", 12, {1.0}).build(), {"'my.doubles'", "float64"});
  GgufBuilder nested;
  nested.begin_array("my.nest", 9, 1);
  expect_refused(folder, nested.build(), {"'my.nest'", "array of arrays"});
  expect_refused(folder, GgufBuilder().scalar<std::uint8_t>("my.bool", 7, 2).build(), {"'my.bool'", "bool"});
  expect_refused(folder, GgufBuilder().array<std::uint8_t>("my.bools", 7, {0, 9}).build(), {"'my.bools'", "bool"});
  expect_refused(folder, GgufBuilder().text("my.text", "ab\xff").build(), {"'my.text'", "UTF-8", "byte 2"});
  expect_refused(folder, GgufBuilder().scalar<std::uint32_t>("my.type", 13, 0).build(), {"'my.type'", "13"});
  GgufBuilder unknown;
  unknown.begin_array("my.list", 77, 0);
  expect_refused(folder, unknown.build(), {"'my.list'", "77"});
  expect_refused(folder, GgufBuilder().u32("", 1).build(), {"key 0", "empty"});
  expect_refused(folder, GgufBuilder().u32("\xc3(", 1).build(), {"key 0", "UTF-8"});
  expect_refused(folder, GgufBuilder().u32(std::string(65536, 'k'), 1).build(), {"key 0", "65536"});
  expect_refused(folder, GgufBuilder().u32("twice", 1).u32("twice", 2).build(), {"twice"});
}

TEST(Gguf, RefusesUnknownStorageTypesByName) {
  TemporaryFolder folder;
  const auto with_type = [](std::uint32_t type) {
    return GgufBuilder().lying_tensor("blk.0.attn_q.weight", type, {256, 2}, 0).build();
  };
  for (const std::uint32_t type : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u})
    expect_refused(folder, with_type(type), {"blk.0.attn_q.weight", "retired GGUF type " + std::to_string(type)});
  for (const std::uint32_t type : {43u, 97u, 200u, 4294967295u})
    expect_refused(folder, with_type(type), {"blk.0.attn_q.weight", "unknown GGUF type " + std::to_string(type)});
}

TEST(Gguf, RefusesTensorsThatContradictThemselves) {
  TemporaryFolder folder;
  const auto table = [](std::string_view name, std::uint32_t type, std::vector<std::uint64_t> dims,
                        std::uint64_t offset) { return GgufBuilder().lying_tensor(name, type, dims, offset).build(); };
  const std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  expect_refused(folder, table("", kF32, {1}, 0), {"entry 0", "no name"});
  expect_refused(folder, table(std::string(129, 'n'), kF32, {1}, 0), {"entry 0", "129"});
  expect_refused(folder, table("bad\xff", kF32, {1}, 0), {"entry 0", "UTF-8"});
  expect_refused(folder, table(std::string_view("a\0b", 3), kF32, {1}, 0), {"entry 0", "NUL"});
  expect_refused(folder, table("t", kF32, {1, 1, 1, 1, 1, 1, 1, 1, 1}, 0), {"'t'", "9 dimensions"});
  expect_refused(folder, table("t", kF32, {4, 0}, 0), {"'t'", "dimension of 0"});
  expect_refused(folder, table("t", kF32, {max, 2}, 0), {"'t'", "64 bits"});
  expect_refused(folder, table("t", kF32, {max}, 0), {"'t'", "64 bits"});
  expect_refused(folder, table("t", kF32, {max / 4}, 0), {"'t'", "past the end"});
  expect_refused(folder, table("t", kQ4_0, {48}, 0), {"'t'", "rows of 48", "multiple of 32"});
  expect_refused(folder, table("t", kF32, {1}, max - 31), {"'t'", "past the end"});
  expect_refused(folder, table("t", kF32, {1}, 1 << 20), {"'t'", "past the end"});
  GgufBuilder twice;
  twice.tensor("same", kF32, {1}, pattern_bytes(4)).tensor("same", kF32, {1}, pattern_bytes(4));
  expect_refused(folder, twice.build(), {"same"});
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  TemporaryFolder folder;
  const auto file = rich_model();
  for (const std::uint64_t count :
       {std::uint64_t{1} << 62, std::numeric_limits<std::uint64_t>::max(), std::uint64_t{100000}}) {
    expect_refused(folder, file.build(0, count), {"metadata"});
    expect_refused(folder, file.build(count, 0), {"tensor"});
  }
  for (const std::uint32_t type : {0u, 4u, 6u, 7u, 8u, 11u}) {
    for (const std::uint64_t count : {std::uint64_t{1} << 61, std::numeric_limits<std::uint64_t>::max()}) {
      GgufBuilder list;
      list.begin_array("my.list", type, count);
      expect_refused(folder, list.build(), {"'my.list'", "claims"});
    }
  }
  std::vector<std::byte> length;
  GgufBuilder::append<std::uint64_t>(length, std::numeric_limits<std::uint64_t>::max() - 3);
  expect_refused(folder, GgufBuilder().raw_pair("my.text", 8, length).build(), {"'my.text'", "ends"});
}

TEST(Gguf, RefusesBlocksOfQuantizationVersion1) {
  TemporaryFolder folder;
  GgufBuilder file;
  file.u32("general.quantization_version", 1);
  expect_refused(folder, add_tensors(file).build(), {"quantization_version", "blocks.q4_0"});
  GgufBuilder plain;
  plain.u32("general.quantization_version", 1).tensor("t", kF32, {1}, pattern_bytes(4));
  EXPECT_NO_THROW(open_bytes(folder, plain.build()));
}

TEST(Gguf, TellsBytesAfterTheLastTensor) {
  TemporaryFolder folder;
  GgufBuilder file;
  auto bytes = add_tensors(file).build();
  EXPECT_TRUE(open_bytes(folder, bytes)->remarks().empty());
  bytes.resize(bytes.size() + 10000);
  const auto model = open_bytes(folder, bytes);
  ASSERT_EQ(model->remarks().size(), 1u);
  EXPECT_NE(model->remarks()[0].find("10000 bytes"), std::string::npos);
}

// --- splits ---

GgufBuilder split_part(std::uint16_t number, std::uint16_t count, std::int32_t tensors) {
  GgufBuilder part;
  if (number == 0) part.text("general.architecture", "test").texts("tokenizer.ggml.tokens", {"a", "b"});
  part.scalar("split.no", 2, number).scalar("split.count", 2, count).scalar("split.tensors.count", 5, tensors);
  const auto name = "tensor." + std::to_string(number);
  part.tensor(name, kF32, {5}, pattern_bytes(20, number + 1u));
  if (number == 1) part.tensor("second.in.1", kQ8_0, {32}, pattern_bytes(34, 9));
  return part;
}

std::string member(const TemporaryFolder& folder, const std::string& name) { return (folder.path() / name).string(); }

TEST(GgufSplits, OpenAsOneModelFromAnyMember) {
  TemporaryFolder folder;
  for (std::uint16_t i = 0; i < 3; ++i)
    folder.write("m-0000" + std::to_string(i + 1) + "-of-00003.gguf", split_part(i, 3, 4).build());
  for (int start = 1; start <= 3; ++start) {
    const auto model = open_gguf(member(folder, "m-0000" + std::to_string(start) + "-of-00003.gguf"));
    ASSERT_EQ(model->tensors().size(), 4u);
    EXPECT_EQ(model->metadata().string("general.architecture"), "test");
    EXPECT_EQ(model->metadata().strings("tokenizer.ggml.tokens")->size(), 2u);
    const char* names[] = {"tensor.0", "tensor.1", "second.in.1", "tensor.2"};
    const std::uint32_t shards[] = {0, 1, 1, 2};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(model->tensors()[i].name, names[i]);
      EXPECT_EQ(model->tensors()[i].shard, shards[i]);
    }
    const auto expected = pattern_bytes(20, 3);
    const auto* last = model->find("tensor.2");
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(std::memcmp(last->data.data(), expected.data(), 20), 0);
  }
}

TEST(GgufSplits, NameTheMissingMember) {
  TemporaryFolder folder;
  folder.write("m-00001-of-00003.gguf", split_part(0, 3, 4).build());
  folder.write("m-00003-of-00003.gguf", split_part(2, 3, 4).build());
  try {
    open_gguf(member(folder, "m-00003-of-00003.gguf"));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("m-00002-of-00003.gguf"), std::string::npos) << error.what();
  }
}

TEST(GgufSplits, RefuseMembersThatDisagree) {
  const auto refused = [](const std::vector<std::pair<std::string, std::vector<std::byte>>>& files,
                          const std::string& fragment) {
    TemporaryFolder folder;
    for (const auto& [name, bytes] : files) folder.write(name, bytes);
    try {
      open_gguf((folder.path() / files[0].first).string());
      ADD_FAILURE() << fragment;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
    }
  };
  const auto part = [](std::uint16_t i, std::uint16_t n, std::int32_t tensors) {
    return split_part(i, n, tensors).build();
  };
  refused({{"renamed.gguf", part(0, 2, 3)}}, "-00001-of-00002.gguf");
  refused({{"m-00002-of-00002.gguf", part(0, 2, 3)}}, "-00001-of-00002.gguf");
  refused({{"m-00001-of-00002.gguf", part(0, 2, 3)}, {"m-00002-of-00002.gguf", part(1, 3, 3)}},
          "m-00002-of-00002.gguf");
  refused({{"m-00001-of-00002.gguf", part(0, 2, 3)}, {"m-00002-of-00002.gguf", part(0, 2, 3)}},
          "m-00002-of-00002.gguf");
  refused({{"m-00001-of-00002.gguf", part(0, 2, 3)}, {"m-00002-of-00002.gguf", GgufBuilder().build()}}, "none found");
  refused({{"m-00001-of-00002.gguf", part(0, 2, 9)}, {"m-00002-of-00002.gguf", part(1, 2, 9)}},
          "split.tensors.count is 9");
  refused({{"m-00001-of-00002.gguf", part(5, 2, 3)}}, "split.no is 5");
  GgufBuilder no_number;
  no_number.u32("split.count", 2);
  refused({{"m-00001-of-00002.gguf", no_number.build()}}, "split.no");
  GgufBuilder repeated;
  repeated.scalar<std::uint16_t>("split.no", 2, 1).scalar<std::uint16_t>("split.count", 2, 2);
  repeated.tensor("tensor.0", kF32, {5}, pattern_bytes(20));
  refused({{"m-00001-of-00002.gguf", part(0, 2, 2)}, {"m-00002-of-00002.gguf", repeated.build()}}, "tensor.0");
}

TEST(GgufSplits, MergedModelsThatKeptTheirKeysAreWhole) {
  TemporaryFolder folder;
  GgufBuilder merged;
  merged.scalar<std::uint16_t>("split.count", 2, 0).tensor("t", kF32, {1}, pattern_bytes(4));
  EXPECT_EQ(open_bytes(folder, merged.build())->tensors().size(), 1u);
}

// --- hostile files: any answer but a crash, and nothing handed out that lies outside the file ---

void touch_everything(const ModelReader& model) {
  std::size_t sum = 0;
  for (const auto& entry : model.metadata().entries()) {
    for (const auto byte : entry.value) sum += std::to_integer<std::size_t>(byte);
    sum += model.metadata().to_text(entry).size();
  }
  for (const auto& tensor : model.tensors())
    for (const auto byte : tensor.data) sum += std::to_integer<std::size_t>(byte);
  volatile std::size_t keep = sum;
  (void)keep;
}

/// True when it opened.
bool survives(const TemporaryFolder& folder, const std::vector<std::byte>& bytes) {
  try {
    touch_everything(*open_bytes(folder, bytes));
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    return false;
  }
}

TEST(GgufHostile, CutAtEveryByte) {
  TemporaryFolder folder;
  auto file = rich_model();
  const auto bytes = add_tensors(file).build();
  ASSERT_TRUE(survives(folder, bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(survives(folder, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)})) << size;
}

TEST(GgufHostile, FlippedBytes) {
  TemporaryFolder folder;
  auto file = rich_model();
  const auto original = add_tensors(file).build();
  std::mt19937 random(20240229);
  int opened = 0;
  constexpr int kRounds = 4000;
  for (int round = 0; round < kRounds; ++round) {
    auto bytes = original;
    const auto flips = 1 + random() % 4;
    for (std::size_t i = 0; i < flips; ++i) {
      auto& byte = bytes[random() % bytes.size()];
      // Single bits, extremes and anything: lengths and counts become huge, off by little, or zero.
      switch (random() % 4) {
        case 0:
          byte ^= static_cast<std::byte>(1u << (random() % 8));
          break;
        case 1:
          byte = std::byte{0xFF};
          break;
        case 2:
          byte = std::byte{0};
          break;
        default:
          byte = static_cast<std::byte>(random());
          break;
      }
    }
    opened += survives(folder, bytes);
  }
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, kRounds);
}

// --- reference files ---

TEST(GgufFixtures, ModelsReadAsWritten) {
  HK_FIXTURE(models, "fixtures/models");
  TemporaryFolder folder;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models)) {
    if (!entry.path().string().ends_with(".gguf.zst")) continue;
    SCOPED_TRACE(entry.path().filename().string());
    const auto bytes = test::read_zst(entry.path());
    test::expect_same_model(*open_bytes(folder, bytes), bytes);
    ++read;
  }
  EXPECT_GE(read, 1);
  std::cout << read << " models read\n";
}

TEST(GgufFixtures, VocabulariesReadAsWritten) {
  HK_FIXTURE(tokenizers, "fixtures/tokenizers");
  TemporaryFolder folder;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tokenizers)) {
    const auto path = entry.path() / "vocab.gguf.zst";
    if (!std::filesystem::exists(path)) continue;
    SCOPED_TRACE(path.string());
    const auto bytes = test::read_zst(path);
    test::expect_same_model(*open_bytes(folder, bytes), bytes);
    ++read;
  }
  EXPECT_GE(read, 1);
}

TEST(GgufFixtures, WholeModelsReadAsWritten) {
  HK_FIXTURE(demo, "models/demo/demo-f16.gguf");
  HK_FIXTURE(stories, "models/stories260K/stories260K.gguf");
  for (const auto& path : {demo, stories}) {
    SCOPED_TRACE(path.string());
    const auto bytes = test::read_file(path);
    test::expect_same_model(*open_gguf(path.string()), bytes);
  }
}

}  // namespace
}  // namespace hk::engine
