// Inputs that are one long word, one long run or nearly a special token, over and over: the time must stay in
// proportion. Nothing is timed; a quadratic step anywhere would take hours and run into the test's own time limit.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/support/vocabulary_fixture.h"
#include "tokenizer/splitter.h"

namespace hk::tokenizer {
namespace {

constexpr std::size_t kLength = std::size_t{1} << 20;

std::string repeated(std::string_view part) {
  std::string text;
  while (text.size() < kLength) text += part;
  return text;
}

std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts;
  for (const char* part :
       {"a", " ", "A", "\n", "7", "<", "<|im_", "\xCC\x81\xCC\xA3", "\xE4\xBD\xA0", "\xFF", " \n", "!"})
    texts.push_back(repeated(part));
  texts.push_back(repeated(" ") + "1");
  texts.push_back(repeated("A") + "a");
  texts.push_back(repeated("7") + "x");
  return texts;
}

TEST(LongInput, EncodesInProportion) {
  for (const char* name : {"llama-spm", "gemma3", "qwen3", "deepseek-llm"}) {
    HK_FIXTURE(path, std::string("fixtures/tokenizers/") + name + "/vocab.gguf.zst");
    const test::LoadedVocabulary loaded(path);
    for (const std::string& text : hostile_texts()) {
      const auto ids = loaded.tokenizer->encode(text, {false, true});
      const std::string back = loaded.tokenizer->decode(ids, false);
      const bool changed = text[0] == '\xCC' || (text[0] == '\xFF' && std::string_view(name) == "deepseek-llm");
      if (changed) continue;  // normalised, or bytes that vocabulary has no token for
      EXPECT_TRUE(back == text) << name << ": " << text.substr(0, 8);
    }
  }
}

TEST(LongInput, EveryPreTokenizerSplitsInProportion) {
  SplitScratch scratch;
  std::set<const Stage*> seen;
  for (const std::string_view name : pre_tokenizer_names()) {
    const PreTokenizer& pre = *find_pre_tokenizer(name);
    if (!seen.insert(pre.stages.data()).second) continue;  // many names share a list
    const Splitter splitter(pre.stages, false, name);
    for (const std::string& text : hostile_texts()) {
      if (text[0] == '\xFF') continue;  // a splitter gets valid text only
      std::size_t covered = 0;
      splitter.split(text, scratch, [&](std::string_view piece) { covered += piece.size(); });
      EXPECT_EQ(covered, text.size()) << name;
    }
  }
}

TEST(LongInput, ThreadsShareATokenizer) {
  HK_FIXTURE(path, "fixtures/tokenizers/qwen3/vocab.gguf.zst");
  const test::LoadedVocabulary loaded(path);
  const std::string text = "Threads share one tokenizer; each has its own scratch. 12345 \xE4\xBD\xA0\xE5\xA5\xBD!\n";
  const auto expected = loaded.tokenizer->encode(text, {true, true});
  std::vector<std::thread> threads;
  std::vector<int> wrong(6, 0);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) count += loaded.tokenizer->encode(text, {true, true}) == expected ? 0 : 1;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(6, 0));
}

}  // namespace
}  // namespace hk::tokenizer
