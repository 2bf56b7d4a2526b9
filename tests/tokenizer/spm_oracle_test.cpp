// The SentencePiece library as the oracle for our SPM tokenizer: the same vocabulary, random texts, the same ids.
#include <gtest/gtest.h>
#include <sentencepiece_processor.h>

#include <cstring>
#include <random>

#include "tests/support/vocabulary_fixture.h"
#include "tokenizer/utf8.h"

namespace hk::tokenizer {
namespace {

// A model in the library's protocol buffer format, written field by field.
class Message {
 public:
  Message& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& real(unsigned field, float value) {
    varint(field << 3 | 5);
    char raw[4];
    std::memcpy(raw, &value, 4);
    bytes_.append(raw, 4);
    return *this;
  }
  Message& text(unsigned field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

std::string library_model(const engine::Metadata& metadata, bool space_prefix) {
  const auto tokens = *metadata.strings("tokenizer.ggml.tokens");
  const auto scores = *metadata.floats("tokenizer.ggml.scores");
  const auto types = *metadata.integers("tokenizer.ggml.token_type");
  Message model;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::string text;
    append_replaced(tokens[i], " ", kLowerOneEighthBlock, text);
    // The library wants exactly one unknown token. User-defined tokens are cut out before it sees a text (see below).
    const std::int32_t type = i == 0 ? 2 : types[i] == 2 || types[i] == 4 ? 5 : types[i];
    model.text(1, Message().text(1, text).real(2, scores[i]).number(3, static_cast<std::uint64_t>(type)).bytes());
  }
  Message trainer;
  trainer.number(3, 2).number(4, tokens.size()).number(35, 1).number(40, 0).number(41, 1).number(42, 2);
  trainer.number(43, ~std::uint64_t{0}).text(45, tokens[0]).text(46, tokens[1]).text(47, tokens[2]);
  model.text(2, trainer.bytes());
  model.text(3, Message().text(1, "identity").number(3, space_prefix ? 1 : 0).number(4, 0).number(5, 1).bytes());
  return model.bytes();
}

class SpmOracle : public testing::TestWithParam<const char*> {};

TEST_P(SpmOracle, GivesTheSameIds) {
  HK_FIXTURE(path, std::string("fixtures/tokenizers/") + GetParam() + "/vocab.gguf.zst");
  const test::LoadedVocabulary loaded(path);
  const Tokenizer& ours = *loaded.tokenizer;
  sentencepiece::SentencePieceProcessor library;
  const auto status =
      library.LoadFromSerializedProto(library_model(loaded.reader->metadata(), ours.adds_space_prefix()));
  ASSERT_TRUE(status.ok()) << status.ToString();
  static constexpr const char* kParts[] = {
      "the", " ",   "  ",     "a", "ing", "\t", "1",  "23", "é",  "ß",  "你", "好", "🦙",   ".",  ", ", "\n",
      "'s",  "ерв", "\u0301", "▁", "สวัส", "</", "()", "#",  "qu", "zz", "Ω",  "½",  "\u00A0", "가", "ん", "x="};
  std::mt19937 random(17);
  std::size_t compared = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t n = random() % 30; n-- > 0;) {
      if (random() % 4 == 0) {
        const std::string piece = ours.piece(static_cast<TokenId>(3 + random() % (ours.size() - 3)));
        if (is_valid_utf8(piece) && piece.find_first_of("<[") == std::string::npos) text += piece;
      } else {
        text += kParts[random() % std::size(kParts)];
      }
    }
    const auto ids = ours.encode(text, {false, false});
    // Texts with user-defined tokens are cut by us; the library would treat what follows differently.
    bool has_user_defined = false;
    for (const TokenId id : ids)
      has_user_defined = has_user_defined || ours.find_special(ours.token_text(id)).has_value();
    if (has_user_defined) continue;
    const std::vector<int> expected = library.EncodeAsIds(text);
    ++compared;
    ASSERT_EQ(ids, std::vector<TokenId>(expected.begin(), expected.end())) << text;
  }
  EXPECT_GT(compared, 500U);
}

INSTANTIATE_TEST_SUITE_P(All, SpmOracle, testing::Values("llama-spm", "mistral-spm", "gemma3"), [](const auto& suite) {
  std::string name = suite.param;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace hk::tokenizer
