// Vocabularies written by hand: what the big ones never do, and what is refused.
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "tests/support/vocabulary_fixture.h"
#include "tokenizer/byte_alphabet.h"

namespace hk::tokenizer {
namespace {

using Ids = std::vector<TokenId>;

/// The message of the refusal, "" when the vocabulary was taken.
std::string refusal(const VocabularySource& source) {
  try {
    Tokenizer::create(source);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_REFUSED(source, fragment)                                             \
  do {                                                                               \
    const std::string sentence = refusal(source);                                    \
    EXPECT_NE(sentence.find(fragment), std::string::npos) << '"' << sentence << '"'; \
    EXPECT_NE(sentence.find("small.gguf"), std::string::npos) << sentence;           \
  } while (false)

test::SmallVocabulary small_bpe() {
  test::SmallVocabulary small;
  for (int b = 0; b < 256; ++b) small.tokens.emplace_back(alphabet_char(static_cast<std::uint8_t>(b)));
  for (const char* text : {"ab", "abc", "bc", "<|end|>", "<mark>", "[PAD261]"}) small.tokens.emplace_back(text);
  small.merges = {"a b", "ab c", "b c"};
  small.types.assign(small.tokens.size(), 1);
  small.types[259] = 3;
  small.types[260] = 4;
  small.types[261] = 4;
  return small;
}

test::SmallVocabulary small_spm() {
  test::SmallVocabulary small;
  small.tokens = {"<unk>",
                  "<s>",
                  "</s>",
                  "\xE2\x96\x81",
                  "a",
                  "b",
                  "ab",
                  "\xE2\x96\x81"
                  "ab",
                  "<x>"};
  small.types = {2, 3, 3, 1, 1, 1, 1, 1, 4};
  small.scores = {0, 0, 0, -5, -5, -5, -1, -2, 0};
  return small;
}

TEST(SmallBpe, MergesCutsAndDecodes) {
  auto small = small_bpe();
  const auto tokens = Tokenizer::create(small.finish("gpt2"));
  EXPECT_EQ(tokens->remarks().size(), 1U);  // no pre-tokenizer is named
  EXPECT_EQ(tokens->encode("abc", {}), (Ids{257}));
  EXPECT_EQ(tokens->encode("bc", {}), (Ids{258}));
  EXPECT_EQ(tokens->encode("a<mark>c<|end|>", {true, false}).size(), 3U + 7U);
  EXPECT_EQ(tokens->encode("a<mark>c<|end|>", {true, true}), (Ids{'a', 260, 'c', 259}));
  EXPECT_EQ(tokens->encode("[PAD261]", {true, true}).size(), 8U);  // a filler is never found in a text
  EXPECT_EQ(tokens->encode("", {}), Ids{});
  EXPECT_EQ(tokens->decode(Ids{257, 259, 'a'}, true), "abca");
  EXPECT_EQ(tokens->decode(Ids{257, 259, 'a'}, false), "abc<|end|>a");
  EXPECT_EQ(tokens->piece(-1), "");
  EXPECT_EQ(tokens->piece(262), "");
  EXPECT_EQ(tokens->token_text(9999), "");
  EXPECT_EQ(tokens->find_special("<|end|>"), 259);
  EXPECT_EQ(tokens->find_special("<|end|> "), std::nullopt);
  EXPECT_EQ(tokens->find_special("abc"), std::nullopt);
  EXPECT_EQ(tokens->find_special(""), std::nullopt);
  EXPECT_TRUE(tokens->is_control(259));
  EXPECT_FALSE(tokens->is_control(260));
  EXPECT_FALSE(tokens->is_control(-1));
  EXPECT_TRUE(tokens->is_eog(259));
}

TEST(SmallBpe, IgnoreMergesAndOwnExpressions) {
  auto small = small_bpe();
  small.merges = {"b c"};
  auto& source = small.finish("gpt2");
  source.pre = "gpt-2";
  EXPECT_EQ(Tokenizer::create(source)->encode("abc", {}), (Ids{'a', 258}));
  source.ignore_merges = true;
  EXPECT_EQ(Tokenizer::create(source)->encode("abc", {}), (Ids{257}));
  source.pre_regex = {"a", "b"};  // wins over `pre`
  EXPECT_EQ(Tokenizer::create(source)->encode("abc", {}), (Ids{'a', 'b', 'c'}));
  source.pre = "nobody-knows";  // the expressions say it all
  EXPECT_EQ(Tokenizer::create(source)->encode("abc", {}), (Ids{'a', 'b', 'c'}));
  source.pre_regex = {"a("};
  EXPECT_REFUSED(source, "a(");
}

TEST(SmallBpe, AddsBosAndEosWhereAsked) {
  auto small = small_bpe();
  auto& source = small.finish("gpt2");
  source.pre = "llama-bpe";
  source.bos = 259;
  source.eos = 260;
  EXPECT_EQ(Tokenizer::create(source)->encode("a", {}), (Ids{259, 'a'}));  // the name alone asks for it
  EXPECT_EQ(Tokenizer::create(source)->encode("", {}), (Ids{259}));
  source.add_eos = true;
  EXPECT_EQ(Tokenizer::create(source)->encode("a", {}), (Ids{259, 'a', 260}));
  EXPECT_EQ(Tokenizer::create(source)->encode("a", {.add_special = false}), (Ids{'a'}));
  source.add_bos = false;
  EXPECT_EQ(Tokenizer::create(source)->encode("a", {}), (Ids{'a', 260}));
  source.add_bos = true;
  source.bos.reset();
  EXPECT_EQ(Tokenizer::create(source)->encode("a", {}), (Ids{'a', 260}));
  EXPECT_EQ(Tokenizer::create(source)->remarks().size(), 1U);
}

TEST(SmallBpe, BytesThatAreNoTokensAreLeftOut) {
  auto small = small_bpe();
  small.tokens['b'] = "something else";
  small.merges = {"a c"};
  small.tokens[257] = "ac";
  const auto tokens = Tokenizer::create(small.finish("gpt2"));
  EXPECT_EQ(tokens->encode("abc", {}), (Ids{257}));  // left out before merging
}

// The family without a byte alphabet: blanks are U+2581, merges run on characters, the rest are byte tokens.
TEST(SmallBpe, CharactersInsteadOfBytes) {
  test::SmallVocabulary small;
  small.tokens = {"\xE2\x96\x81",
                  "a",
                  "\xE2\x96\x81"
                  "a",
                  "\n",
                  "<0xC3>",
                  "<0xA9>",
                  "<unk>",
                  "b"};
  small.merges = {"\xE2\x96\x81 a"};
  small.types = {1, 1, 1, 1, 6, 6, 2, 1};
  auto& source = small.finish("gpt2");
  source.pre = "gemma4";
  source.unknown = 6;
  const auto tokens = Tokenizer::create(source);
  EXPECT_EQ(tokens->encode(" a\nb", {}), (Ids{2, 3, 7}));
  EXPECT_EQ(tokens->encode("a\xC3\xA9", {}), (Ids{1, 4, 5}));
  EXPECT_EQ(tokens->encode("\xC3\xA8", {}), (Ids{6}));  // no token for its second byte
  EXPECT_EQ(tokens->encode("\xC3", {}), (Ids{4}));
  EXPECT_EQ(tokens->decode(Ids{2, 4, 5, 3}, true), " a\xC3\xA9\n");
  source.pre = "whitespace";
  small.tokens[0] = " ";
  small.merges = {"a b"};
  small.tokens[2] = "ab";
  const auto words = Tokenizer::create(source);
  EXPECT_EQ(words->encode("ab a b", {}), (Ids{2, 0, 1, 0, 7}));
  EXPECT_EQ(words->decode(Ids{2, 0, 1}, true), "ab a");
}

TEST(SmallSpm, MergesByScore) {
  auto small = small_spm();
  const auto tokens = Tokenizer::create(small.finish("llama"));
  EXPECT_EQ(tokens->bos(), 1);
  EXPECT_EQ(tokens->eos(), 2);
  EXPECT_TRUE(tokens->is_eog(2));
  EXPECT_EQ(tokens->encode("ab", {}), (Ids{1, 7}));
  EXPECT_EQ(tokens->encode("ab<x>ab ab", {false, false}), (Ids{7, 8, 7, 7}));  // a blank in front again after <x>
  EXPECT_EQ(tokens->encode("", {}), (Ids{1}));
  EXPECT_EQ(tokens->encode("z", {false, false}), (Ids{3, 0}));  // no byte tokens: unknown
  EXPECT_EQ(tokens->decode(Ids{1, 7, 7}, true), "ab ab");
  EXPECT_EQ(tokens->piece(7), " ab");
}

TEST(SmallSpm, SurvivesStrangeScores) {
  auto small = small_spm();
  small.scores[6] = std::numeric_limits<float>::quiet_NaN();
  small.scores[7] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(Tokenizer::create(small.finish("llama"))->encode("ab", {false, false}), (Ids{7}));
}

TEST(SmallSpm, NoBlankInFront) {
  auto small = small_spm();
  auto& source = small.finish("llama");
  source.add_space_prefix = false;
  const auto tokens = Tokenizer::create(source);
  EXPECT_FALSE(tokens->adds_space_prefix());
  EXPECT_EQ(tokens->encode("ab", {false, false}), (Ids{6}));
  EXPECT_EQ(tokens->decode(Ids{7}, false), " ab");
}

TEST(SmallSpm, Phi3SwallowsBlanksAfterSpecials) {
  auto small = small_spm();
  auto& source = small.finish("llama");
  source.general_name = "My Phi-3 tune";
  const auto tokens = Tokenizer::create(source);
  EXPECT_EQ(tokens->encode("<x>  \n\xE3\x80\x80"
                           "ab",
                           {false, false}),
            (Ids{8, 7}));
  EXPECT_EQ(tokens->encode("<s> ab", {false, true}), (Ids{1, 3, 7}));
}

TEST(Refusals, UnknownNames) {
  auto small = small_bpe();
  auto& source = small.finish("bert");
  EXPECT_REFUSED(source, "'bert'");
  source.model = "";
  EXPECT_REFUSED(source, "tokenizer.ggml.model");
  source.model = "gpt2";
  source.pre = "nobody-knows";
  EXPECT_REFUSED(source, "'nobody-knows'");
}

TEST(Refusals, ContradictingLists) {
  {
    auto small = small_bpe();
    small.types.pop_back();
    EXPECT_REFUSED(small.finish("gpt2"), "token_type");
  }
  {
    auto small = small_bpe();
    small.types[3] = 7;
    EXPECT_REFUSED(small.finish("gpt2"), "token 3 is 7");
  }
  {
    auto small = small_bpe();
    small.types[3] = 6;
    EXPECT_REFUSED(small.finish("gpt2"), "token 3 is typed as a byte");
  }
  for (const char* merge : {"ab", "", " ", "a", "a  "}) {
    auto small = small_bpe();
    small.merges[1] = merge;
    EXPECT_REFUSED(small.finish("gpt2"), "merge 1");
  }
  {
    auto small = small_bpe();
    small.merges[2] = "a z";
    EXPECT_REFUSED(small.finish("gpt2"), "'az'");
  }
  {
    auto small = small_bpe();
    small.merges.clear();
    EXPECT_REFUSED(small.finish("gpt2"), "merges");
  }
  {
    auto small = small_spm();
    small.scores.pop_back();
    EXPECT_REFUSED(small.finish("llama"), "scores");
  }
  {
    auto small = small_spm();
    small.tokens.clear();
    small.types.clear();
    small.scores.clear();
    EXPECT_REFUSED(small.finish("llama"), "tokens");
  }
}

TEST(Refusals, SpecialIdsOutside) {
  auto small = small_bpe();
  auto& source = small.finish("gpt2");
  source.bos = 262;
  EXPECT_REFUSED(source, "bos_token_id is 262");
  source.bos = -1;
  EXPECT_REFUSED(source, "bos_token_id is -1");
}

TEST(EndOfGeneration, FollowsTypesAndExceptions) {
  auto small = small_bpe();
  const auto eog = [&] {
    const auto tokens = Tokenizer::create(small.finish("gpt2"));
    return Ids(tokens->eog_ids().begin(), tokens->eog_ids().end());
  };
  EXPECT_EQ(eog(), (Ids{259}));
  small.source.eos = 5;
  small.source.eot = 260;
  small.source.eog_ids = {7, 5, 100000};
  EXPECT_EQ(eog(), (Ids{5, 7, 259, 260}));
  small.tokens[260] = "<|call|>";
  small.tokens[261] = "<|return|>";
  EXPECT_EQ(eog(), (Ids{5, 7, 260, 261}));  // <|end|> ends one message of several
  small.source.eog_ids = {259};
  EXPECT_EQ(eog(), (Ids{5, 259, 260, 261}));  // unless the model itself says so
  small.tokens[261] = "</s>";
  small.types[261] = 4;
  small.source.eog_ids.clear();
  EXPECT_EQ(eog(), (Ids{5, 259, 260}));  // user-defined: a closing tag
  small.types[261] = 3;
  EXPECT_EQ(eog(), (Ids{5, 259, 260, 261}));
  small.tokens[260] = "<|tool_response>";
  EXPECT_EQ(eog(), (Ids{5, 259, 260}));
}

}  // namespace
}  // namespace hk::tokenizer
