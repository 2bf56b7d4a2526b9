// TextStream: characters cut between tokens, bytes that never become one, the blank in front.
#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "tests/support/vocabulary_fixture.h"
#include "tokenizer/tokenizer.h"

namespace hk::tokenizer {
namespace {

/// 256 byte tokens, then a few normal and special ones.
std::unique_ptr<Tokenizer> byte_tokenizer(test::SmallVocabulary& small) {
  small.tokens = {"<unk>", "<s>", "</s>"};
  small.types = {2, 3, 3};
  for (int b = 0; b < 256; ++b) {
    char text[8];
    std::snprintf(text, sizeof text, "<0x%02X>", static_cast<unsigned>(b));
    small.tokens.emplace_back(text);
    small.types.push_back(6);
  }
  small.tokens.emplace_back("\xE2\x96\x81hi");
  small.types.push_back(1);
  small.scores.assign(small.tokens.size(), 0);
  return Tokenizer::create(small.finish("llama"));
}

constexpr TokenId kHi = 3 + 256;
TokenId byte(unsigned char b) { return 3 + b; }

TEST(TextStream, HoldsBackACutCharacter) {
  test::SmallVocabulary small;
  const auto tokens = byte_tokenizer(small);
  TextStream stream(*tokens, true, true);
  EXPECT_EQ(stream.push(byte(0xF0)), "");
  EXPECT_EQ(stream.push(byte(0x9F)), "");
  EXPECT_EQ(stream.push(byte(0x98)), "");
  EXPECT_EQ(stream.push(byte(0x80)), "\xF0\x9F\x98\x80");
  EXPECT_EQ(stream.push(byte(0xC3)), "");
  EXPECT_EQ(stream.push(byte('x')), "\xEF\xBF\xBDx");
  EXPECT_EQ(stream.push(byte(0xE4)), "");
  EXPECT_EQ(stream.push(byte(0xBD)), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, RemovesOneBlankInFront) {
  test::SmallVocabulary small;
  const auto tokens = byte_tokenizer(small);
  TextStream fresh(*tokens, true, true);
  EXPECT_EQ(fresh.push(1), "");  // a control token is no text
  EXPECT_EQ(fresh.push(kHi), "hi");
  EXPECT_EQ(fresh.push(kHi), " hi");
  TextStream going_on(*tokens, true, false);
  EXPECT_EQ(going_on.push(kHi), " hi");
  TextStream shown(*tokens, false, true);
  EXPECT_EQ(shown.push(1), "<s>");
  EXPECT_EQ(shown.push(kHi), " hi");
}

TEST(TextStream, IgnoresIdsOutOfRange) {
  test::SmallVocabulary small;
  const auto tokens = byte_tokenizer(small);
  TextStream stream(*tokens, true, true);
  EXPECT_EQ(stream.push(-1), "");
  EXPECT_EQ(stream.push(100000), "");
  EXPECT_EQ(stream.push(kHi), "hi");
}

// Whatever the bytes: the parts are valid UTF-8, and valid text comes through as it is.
TEST(TextStream, PartsAreAlwaysValid) {
  test::SmallVocabulary small;
  const auto tokens = byte_tokenizer(small);
  std::mt19937 random(21);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes, streamed;
    for (std::size_t n = random() % 24; n-- > 0;)
      bytes += round % 2 == 0 ? static_cast<char>(random() % 256)
                              : static_cast<char>("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"[random() % 10]);
    TextStream stream(*tokens, true, false);
    for (const char c : bytes) {
      const std::string part = stream.push(byte(static_cast<unsigned char>(c)));
      EXPECT_TRUE(is_valid_utf8(part));
      streamed += part;
    }
    streamed += stream.finish();
    EXPECT_TRUE(is_valid_utf8(streamed));
    if (is_valid_utf8(bytes)) {
      EXPECT_EQ(streamed, bytes);
    }
  }
}

TEST(TextStream, EqualsDecodeOnRealVocabularies) {
  for (const char* name : {"llama-spm", "gemma3", "qwen3"}) {
    HK_FIXTURE(path, std::string("fixtures/tokenizers/") + name + "/vocab.gguf.zst");
    const test::LoadedVocabulary loaded(path);
    const std::string text =
        "Grüße, 世界! 🦙👍🏽 \xE0\xB8\xAA\xE0\xB8\xA7\xE0\xB8\xB1 e = mc²\n\n  indented";
    const auto ids = loaded.tokenizer->encode(text, {true, false});
    for (const bool skip : {false, true}) {
      TextStream stream(*loaded.tokenizer, skip, true);
      std::string streamed;
      for (const TokenId id : ids) streamed += stream.push(id);
      streamed += stream.finish();
      EXPECT_EQ(streamed, loaded.tokenizer->decode(ids, skip)) << name;
    }
  }
}

}  // namespace
}  // namespace hk::tokenizer
