// The metadata keys of a tokenizer: both spellings of arrays, key names without "ggml.", converted files, refusals.
#include "engine/container/vocabulary.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/container/convert.h"
#include "engine/container/hk_writer.h"
#include "engine/container/metadata_builder.h"
#include "tests/support/vocabulary_fixture.h"

namespace hk::engine {
namespace {

using Ids = std::vector<tokenizer::TokenId>;

struct Written {
  test::TemporaryFolder folder;
  std::unique_ptr<ModelReader> reader;

  explicit Written(const MetadataBuilder& metadata) {
    const std::string path = (folder.path() / "vocab.hk").string();
    HkWriter writer(path, {}, metadata, {});
    writer.finish();
    reader = open_model(path);
  }
};

/// A SentencePiece vocabulary, its lists as blobs or as json.
MetadataBuilder small_spm(const std::string& prefix, bool json) {
  MetadataBuilder metadata;
  metadata.add_string("general.architecture", "llama");
  metadata.add_string(prefix + "model", "llama");
  if (json) {
    metadata.add_json(prefix + "tokens", R"(["<unk>","<s>","</s>","▁","a","b","ab","▁ab"])");
    metadata.add_json(prefix + "scores", "[0, 0, 0, -5, -5.5, -5, -1, -2]");
    metadata.add_json(prefix + "token_type", "[2, 3, 3, 1, 1, 1, 1, 1]");
  } else {
    const std::string_view tokens[] = {"<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab"};
    const float scores[] = {0, 0, 0, -5, -5.5F, -5, -1, -2};
    const std::int32_t types[] = {2, 3, 3, 1, 1, 1, 1, 1};
    metadata.add_strings(prefix + "tokens", tokens);
    metadata.add_floats(prefix + "scores", scores);
    metadata.add_integers(prefix + "token_type", types);
  }
  return metadata;
}

TEST(Vocabulary, BothSpellingsAndBothNames) {
  for (const char* prefix : {"tokenizer.ggml.", "tokenizer."}) {
    for (const bool json : {false, true}) {
      const Written file(small_spm(prefix, json));
      const auto tokens = make_tokenizer(*file.reader);
      EXPECT_EQ(tokens->size(), 8U);
      EXPECT_EQ(tokens->encode("ab ab", {}), (Ids{1, 7, 7})) << prefix << json;
      EXPECT_EQ(tokens->decode(Ids{1, 7, 7}, true), "ab ab");
    }
  }
}

TEST(Vocabulary, UsualNamesWinOverShortOnes) {
  auto metadata = small_spm("tokenizer.ggml.", false);
  metadata.add_string("tokenizer.model", "nonsense");
  metadata.add_integer("tokenizer.eos_token_id", 5);
  const Written file(metadata);
  EXPECT_EQ(make_tokenizer(*file.reader)->eos(), 5);  // absent under the usual name
}

TEST(Vocabulary, IdsThatMeanNone) {
  auto metadata = small_spm("tokenizer.ggml.", false);
  metadata.add_integer("tokenizer.ggml.bos_token_id", 4294967295);
  metadata.add_integer("tokenizer.ggml.padding_token_id", -1);
  const Written file(metadata);
  EXPECT_EQ(make_tokenizer(*file.reader)->bos(), 1);  // the default of the family
}

TEST(Vocabulary, EverythingThatEndsGeneration) {
  auto metadata = small_spm("tokenizer.ggml.", false);
  const std::int32_t ids[] = {6, 4};
  metadata.add_integers("tokenizer.hk.eog_ids", ids);
  const Written file(metadata);
  const auto tokens = make_tokenizer(*file.reader);
  EXPECT_EQ(Ids(tokens->eog_ids().begin(), tokens->eog_ids().end()), (Ids{2, 4, 6}));
}

TEST(Vocabulary, OwnExpressions) {
  MetadataBuilder metadata;
  metadata.add_string("tokenizer.ggml.model", "gpt2");
  const std::string_view tokens[] = {"a", "b", "c", "ab", "abc"};
  const std::string_view merges[] = {"a b", "ab c"};
  const std::string_view expressions[] = {"ab"};
  metadata.add_strings("tokenizer.ggml.tokens", tokens);
  metadata.add_strings("tokenizer.ggml.merges", merges);
  metadata.add_strings("tokenizer.hk.pre_regex", expressions);
  const Written file(metadata);
  const auto made = make_tokenizer(*file.reader);
  EXPECT_EQ(made->encode("abc", {}), (Ids{3, 2}));
  EXPECT_TRUE(made->remarks().empty());
}

TEST(Vocabulary, SameIdsAfterConversion) {
  for (const char* name : {"phi-3", "deepseek-coder"}) {
    HK_FIXTURE(path, std::string("fixtures/tokenizers/") + name + "/vocab.gguf.zst");
    const test::LoadedVocabulary gguf(path);
    const std::string out = (gguf.folder.path() / "out.hk").string();
    convert_model(*gguf.reader, out, {});
    const auto hk = open_model(out);
    const auto tokens = make_tokenizer(*hk);
    const std::string text = "<|user|>\n Hello, 12345 <|end|> <｜fim▁hole｜>int main() {}\n\xE4\xBD\xA0\xE5\xA5\xBD";
    EXPECT_EQ(tokens->encode(text, {true, true}), gguf.tokenizer->encode(text, {true, true}));
    EXPECT_EQ(Ids(tokens->eog_ids().begin(), tokens->eog_ids().end()),
              Ids(gguf.tokenizer->eog_ids().begin(), gguf.tokenizer->eog_ids().end()));
  }
}

void expect_refused(const MetadataBuilder& metadata, const std::string& fragment) {
  const Written file(metadata);
  try {
    make_tokenizer(*file.reader);
    ADD_FAILURE() << "taken, expected a refusal that speaks of " << fragment;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(fragment), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("vocab.hk"), std::string::npos) << error.what();
  }
}

TEST(Vocabulary, Refusals) {
  MetadataBuilder none;
  none.add_string("general.architecture", "llama");
  expect_refused(none, "no vocabulary");
  auto strange_id = small_spm("tokenizer.ggml.", false);
  strange_id.add_integer("tokenizer.ggml.eos_token_id", std::int64_t{1} << 40);
  expect_refused(strange_id, "tokenizer.ggml.eos_token_id");
  auto large_id = small_spm("tokenizer.ggml.", false);
  large_id.add_integer("tokenizer.ggml.eos_token_id", 8);
  expect_refused(large_id, "eos_token_id is 8");
  auto wrong_type = small_spm("tokenizer.ggml.", false);
  wrong_type.add_string("tokenizer.ggml.add_bos_token", "yes");
  expect_refused(wrong_type, "tokenizer.ggml.add_bos_token");
}

}  // namespace
}  // namespace hk::engine
