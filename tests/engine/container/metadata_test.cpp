// Metadata getters over every value type, both spellings of arrays, and what they refuse.
#include "engine/container/metadata.h"

#include <cstring>
#include <string>

#include "base/error.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/metadata_builder.h"
#include "engine/container/metadata_json.h"
#include "tests/engine/container/hk_fixtures.h"

namespace hk::engine {
namespace {

using test::bytes_of;
using test::error_of;

/// Entries with their own storage.
class MetadataTest : public testing::Test {
 protected:
  void add(std::string_view key, ValueType type, std::span<const std::byte> value) {
    values_.push_back(std::make_unique<std::vector<std::byte>>(value.begin(), value.end()));
    metadata_.add({key, type, *values_.back()});
    metadata_.index();
  }
  template <typename T>
  void add_number(std::string_view key, ValueType type, T value) {
    add(key, type, std::as_bytes(std::span(&value, 1)));
  }
  void SetUp() override { metadata_.set_file("file.hk"); }

  Metadata metadata_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> values_;
};

TEST_F(MetadataTest, AbsentKeysAreNullopt) {
  EXPECT_EQ(metadata_.find("x"), nullptr);
  metadata_.index();
  EXPECT_FALSE(metadata_.string("x"));
  EXPECT_FALSE(metadata_.integer("x"));
  EXPECT_FALSE(metadata_.number("x"));
  EXPECT_FALSE(metadata_.boolean("x"));
  EXPECT_FALSE(metadata_.strings("x"));
  EXPECT_FALSE(metadata_.integers("x"));
  EXPECT_FALSE(metadata_.floats("x"));
  EXPECT_TRUE(metadata_.floats_in_place("x").empty());
  EXPECT_FALSE(metadata_.is_array("x"));
  EXPECT_EQ(metadata_.array_size("x"), 0u);
}

TEST_F(MetadataTest, ScalarsConvertWhereNothingIsLost) {
  add_number("int", ValueType::kInt64, std::int64_t{-5});
  add_number("one", ValueType::kInt64, std::int64_t{1});
  add_number("half", ValueType::kFloat64, 0.5);
  add_number("whole", ValueType::kFloat64, 1e15);
  add_number("huge", ValueType::kFloat64, 1e300);
  add_number("nan", ValueType::kFloat64, std::nan(""));
  add_number("true", ValueType::kBool, std::uint8_t{1});
  add("text", ValueType::kString, bytes_of("hé"));
  EXPECT_EQ(metadata_.integer("int"), -5);
  EXPECT_EQ(metadata_.number("int"), -5.0);
  EXPECT_EQ(metadata_.integer("whole"), 1000000000000000);
  EXPECT_EQ(metadata_.integer("true"), 1);
  EXPECT_EQ(metadata_.boolean("one"), true);
  EXPECT_EQ(metadata_.boolean("true"), true);
  EXPECT_EQ(metadata_.string("text"), "hé");
  for (const auto* key : {"half", "huge", "nan", "text"})
    EXPECT_NE(error_of([&] { (void)metadata_.integer(key); }).find(key), std::string::npos) << key;
  EXPECT_NE(error_of([&] { (void)metadata_.boolean("int"); }), "");
  EXPECT_NE(error_of([&] { (void)metadata_.boolean("half"); }), "");
  EXPECT_NE(error_of([&] { (void)metadata_.number("true"); }), "");
  const auto sentence = error_of([&] { (void)metadata_.string("int"); });
  EXPECT_EQ(sentence, "file.hk: metadata key \"int\": a string was expected, found int64");
}

TEST_F(MetadataTest, BrokenValuesAreRefusedByKey) {
  add("short", ValueType::kInt64, bytes_of("1234"));
  add("bool", ValueType::kBool, bytes_of("\x02"));
  add("text", ValueType::kString, bytes_of("\xff\xff"));
  add("none", static_cast<ValueType>(99), {});
  EXPECT_NE(error_of([&] { (void)metadata_.integer("short"); }).find("4 bytes"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)metadata_.boolean("bool"); }), "");
  EXPECT_NE(error_of([&] { (void)metadata_.string("text"); }).find("UTF-8"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)metadata_.string("none"); }).find("unknown value type 0x63"), std::string::npos);
  for (const auto& entry : metadata_.entries()) {
    EXPECT_NE(value_problem(entry), "");
    EXPECT_TRUE(metadata_.to_text(entry).starts_with("<")) << metadata_.to_text(entry);
  }
}

TEST_F(MetadataTest, ArraysInBothSpellings) {
  const std::string_view words[] = {"héllo", "", "a\nb"};
  const std::int32_t integers[] = {1, -2, 3000000};
  const float floats[] = {0.5f, 1.0f, -2.25f};
  add("s.blob", ValueType::kBytes, make_blob(words));
  add("s.json", ValueType::kJson, bytes_of(R"(["h\u00e9llo","","a\nb"])"));
  add("i.blob", ValueType::kBytes, make_blob(integers));
  add("i.json", ValueType::kJson, bytes_of(" [1, -2, 3000000]"));
  add("f.blob", ValueType::kBytes, make_blob(floats));
  add("f.json", ValueType::kJson, bytes_of("[0.5,1,-2.25]"));
  add("empty", ValueType::kJson, bytes_of("[]"));
  for (const auto* key : {"s.blob", "s.json"}) {
    const auto strings = metadata_.strings(key);
    ASSERT_EQ(strings->size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ((*strings)[i], words[i]);
    EXPECT_EQ(metadata_.array_size(key), 3u);
    EXPECT_TRUE(metadata_.is_array(key));
    EXPECT_NE(error_of([&] { (void)metadata_.integers(key); }), "");
    EXPECT_NE(error_of([&] { (void)metadata_.floats(key); }), "");
  }
  for (const auto* key : {"i.blob", "i.json"}) {
    EXPECT_EQ(metadata_.integers(key), std::vector<std::int32_t>(std::begin(integers), std::end(integers)));
    EXPECT_EQ(metadata_.floats(key), (std::vector<float>{1, -2, 3000000}));
    EXPECT_NE(error_of([&] { (void)metadata_.strings(key); }), "");
  }
  for (const auto* key : {"f.blob", "f.json"}) {
    EXPECT_EQ(metadata_.floats(key), std::vector<float>(std::begin(floats), std::end(floats)));
    EXPECT_NE(error_of([&] { (void)metadata_.integers(key); }), "");
  }
  EXPECT_EQ(metadata_.strings("empty")->size(), 0u);
  EXPECT_TRUE(metadata_.integers("empty")->empty());
  EXPECT_TRUE(metadata_.floats("empty")->empty());
  EXPECT_EQ(metadata_.floats_in_place("f.blob").size(), 3u);
  EXPECT_TRUE(metadata_.floats_in_place("i.blob").empty());
  EXPECT_EQ(metadata_.integers_in_place("i.blob")[1], -2);
  EXPECT_EQ(metadata_.to_text(*metadata_.find("s.blob"), 2), "[\"héllo\", \"\", ...] (3 elements)");
  EXPECT_EQ(metadata_.to_text(*metadata_.find("i.blob")), "[1, -2, 3000000]");
}

TEST_F(MetadataTest, JsonArraysAreCheckedElementByElement) {
  add("range", ValueType::kJson, bytes_of("[1, 2147483648]"));
  add("fraction", ValueType::kJson, bytes_of("[1.5]"));
  add("mixed", ValueType::kJson, bytes_of("[\"a\", 1]"));
  add("nested", ValueType::kJson, bytes_of("[[1]]"));
  add("object", ValueType::kJson, bytes_of("{\"a\": [1]}"));
  add("tail", ValueType::kJson, bytes_of("[1] x"));
  add("cut", ValueType::kJson, bytes_of("[1,"));
  add("large", ValueType::kJson, bytes_of("[1e39]"));
  EXPECT_NE(error_of([&] { (void)metadata_.integers("range"); }).find("element 1"), std::string::npos);
  for (const auto* key : {"fraction", "mixed", "nested", "object", "tail", "cut"})
    EXPECT_NE(error_of([&] { (void)metadata_.integers(key); }), "") << key;
  EXPECT_NE(error_of([&] { (void)metadata_.strings("mixed"); }).find("element 1"), std::string::npos);
  EXPECT_NE(error_of([&] { (void)metadata_.floats("large"); }), "");
  EXPECT_EQ(metadata_.array_size("cut"), 0u);
  EXPECT_EQ(metadata_.array_size("nested"), 1u);
  EXPECT_EQ(metadata_.array_size("object"), 0u);
}

TEST_F(MetadataTest, DeepJsonCostsNothing) {
  const std::string deep(1000000, '[');
  EXPECT_NE(check_json(deep).find("nested"), std::string::npos);
  EXPECT_NE(check_json(deep + std::string(1000000, ']')).find("nested"), std::string::npos);
  EXPECT_EQ(check_json(std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']')), "");
}

TEST_F(MetadataTest, BlobsAreCheckedOnceAndWhole) {
  const std::string_view words[] = {"abc", "de"};
  const auto good = make_blob(words);
  Blob blob;
  EXPECT_EQ(read_blob(good, blob), "");
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_NE(read_blob(std::span(good).first(size), blob), "") << size;
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_NE(read_blob(longer, blob), "");
  const auto with = [&](std::size_t at, std::uint32_t value) {
    auto changed = good;
    std::memcpy(changed.data() + at, &value, 4);
    return read_blob(changed, blob);
  };
  EXPECT_NE(with(0, 9), "");           // kind
  EXPECT_NE(with(0, 0x101), "");       // filler
  EXPECT_NE(with(4, 0xFFFFFFFF), "");  // count
  EXPECT_NE(with(8, 1), "");           // first offset
  EXPECT_NE(with(12, 6), "");          // past the end
  EXPECT_NE(with(16, 2), "");          // decreasing
}

TEST_F(MetadataTest, KeysOccurOnce) {
  add("k", ValueType::kString, {});
  EXPECT_NE(error_of([&] { add("k", ValueType::kString, {}); }).find("\"k\" occurs twice"), std::string::npos);
}

TEST(MetadataBuilder, RefusesWhatCannotBeStored) {
  MetadataBuilder builder;
  builder.add_string("a", "x");
  EXPECT_NE(test::error_of([&] { builder.add_integer("a", 1); }), "");
  EXPECT_NE(test::error_of([&] { builder.add_string("b", "\xff"); }), "");
  EXPECT_NE(test::error_of([&] { builder.add_json("c", "{"); }), "");
  EXPECT_NE(test::error_of([&] { builder.add_string(std::string(65536, 'k'), ""); }), "");
  EXPECT_EQ(builder.count(), 1u);
}

}  // namespace
}  // namespace hk::engine
