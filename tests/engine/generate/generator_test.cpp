// The token loop and the session, driven by a toy model: reasons to end, prefix re-use, cancellation, text on the way
// out.
#include "engine/generate/generator.h"

#include <gtest/gtest.h>

#include "toy_model.h"

namespace hk::engine {
namespace {

using test::ToyModel;
using test::ToyTokenizer;
using Ids = std::vector<TokenId>;

GenerateOptions at_most(std::size_t tokens) {
  GenerateOptions options;
  options.max_tokens = tokens;
  return options;
}

SamplerSettings greedy() {
  SamplerSettings settings;
  settings.temperature = 0;
  return settings;
}

class Generation : public testing::Test {
 protected:
  ToyTokenizer tokenizer{{"</s>", "<x>", "a", "b", "c", " d", "Use", "r:", "\xe2\x82", "\xac", "\n"}};
  ToyModel model{11};
  Sampler sampler{greedy(), 11, tokenizer.eog_ids()};

  /// The model answers with these tokens after a prompt of `start` tokens, then with </s>.
  void answer_with(std::size_t start, Ids ids) {
    model.script = std::move(ids);
    model.script.push_back(0);
    model.script_start = start;
  }
  Session session(std::size_t context = 64) { return Session(model, {context, kernels::KvType::kF16}); }
};

TEST_F(Generation, StreamsTextUntilTheModelEnds) {
  answer_with(2, {2, 5, 3});
  auto chat = session();
  std::string streamed;
  GenerateOptions options;
  options.on_text = [&](std::string_view text) { streamed += text; };
  const auto result = generate(chat, tokenizer, sampler, Ids{3, 4}, options);
  EXPECT_EQ(result.text, "a db");
  EXPECT_EQ(streamed, result.text);
  EXPECT_EQ(result.tokens, (Ids{2, 5, 3}));
  EXPECT_EQ(result.reason, FinishReason::kEndOfGeneration);
  EXPECT_EQ(result.end_token, 0);
  EXPECT_EQ(result.statistics.prompt_tokens, 2u);
  EXPECT_EQ(result.statistics.generated_tokens, 4u);
  EXPECT_EQ(result.statistics.decoded_tokens, 3u);
  // Everything but the end token was computed and stays.
  EXPECT_EQ(Ids(chat.history().begin(), chat.history().end()), (Ids{3, 4, 2, 5, 3}));
}

TEST_F(Generation, LimitOfTokens) {
  answer_with(1, {2, 3, 4});
  for (const std::size_t limit : {0, 1, 2, 3}) {
    auto chat = session();
    GenerateOptions options;
    options.max_tokens = limit;
    const auto result = generate(chat, tokenizer, sampler, Ids{2}, options);
    EXPECT_EQ(result.reason, FinishReason::kLength);
    EXPECT_EQ(result.tokens.size(), limit);
    EXPECT_EQ(chat.history().size(), 1 + (limit == 0 ? 0 : limit - 1));  // no forward pass for unused logits
  }
}

TEST_F(Generation, FullContextIsToldAndLosesNothing) {
  answer_with(2, {2, 3, 2, 3, 2, 3});
  auto chat = session(4);
  const auto result = generate(chat, tokenizer, sampler, Ids{2, 2});
  EXPECT_EQ(result.reason, FinishReason::kContextFull);
  EXPECT_EQ(result.tokens, (Ids{2, 3, 2}));  // the token after the last position is still known
  EXPECT_EQ(result.text, "aba");
  EXPECT_EQ(chat.room(), 0u);
}

TEST_F(Generation, PromptThatFillsTheContextGivesOneToken) {
  answer_with(3, {4});
  auto chat = session(3);
  const auto result = generate(chat, tokenizer, sampler, Ids{2, 2, 2});
  EXPECT_EQ(result.text, "c");
  EXPECT_EQ(result.reason, FinishReason::kContextFull);
}

TEST_F(Generation, ImpossiblePromptsAreRefusedBeforeAnythingHappens) {
  auto chat = session(3);
  answer_with(2, {4});
  generate(chat, tokenizer, sampler, Ids{2, 2});
  const Ids before(chat.history().begin(), chat.history().end());
  EXPECT_THROW(generate(chat, tokenizer, sampler, Ids{}), Error);
  EXPECT_THROW(generate(chat, tokenizer, sampler, Ids{3, 3, 3, 3}), Error);
  EXPECT_EQ(Ids(chat.history().begin(), chat.history().end()), before);
  EXPECT_THROW(chat.append(Ids{1, 1}), Error);
}

TEST_F(Generation, StopStringAcrossTokens) {
  answer_with(1, {2, 10, 6, 7, 5});  // "a\n" "Use" "r:" " d"
  auto chat = session();
  std::string streamed;
  GenerateOptions options;
  options.stop = {"User:"};
  options.on_text = [&](std::string_view text) {
    streamed += text;
    EXPECT_EQ(streamed.find('U'), std::string::npos);
  };
  const auto result = generate(chat, tokenizer, sampler, Ids{3}, options);
  EXPECT_EQ(result.reason, FinishReason::kStopString);
  EXPECT_EQ(result.stop, "User:");
  EXPECT_EQ(streamed, "a\n");
  EXPECT_EQ(result.text, "a\n");
}

TEST_F(Generation, HeldBackTextComesOutAtTheEnd) {
  answer_with(1, {2, 6});
  auto chat = session();
  GenerateOptions options;
  options.stop = {"User:"};
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{3}, options).text, "aUse");
}

TEST_F(Generation, CharactersAreWholeOrMarked) {
  auto chat = session();
  answer_with(1, {2, 8, 9});
  std::vector<std::string> parts;
  GenerateOptions options;
  options.on_text = [&](std::string_view text) { parts.emplace_back(text); };
  generate(chat, tokenizer, sampler, Ids{3}, options);
  EXPECT_EQ(parts, (std::vector<std::string>{"a", "\xe2\x82\xac"}));
  answer_with(1, {2, 8});
  chat.clear();
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{3}).text, "a\xef\xbf\xbd");
}

TEST_F(Generation, SpecialTokensAndPrefixBlank) {
  answer_with(1, {5, 1, 2});
  auto chat = session();
  GenerateOptions options;
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{3}, options).text, " da");
  options.fresh_text = true;
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{3}, options).text, "da");
  options.show_special = true;
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{3}, options).text, "d<x>a");
}

TEST_F(Generation, EndTokenIsTextWhenAskedFor) {
  answer_with(1, {2});
  auto chat = session();
  GenerateOptions options;
  options.stop_at_eog = false;
  options.max_tokens = 3;
  const auto result = generate(chat, tokenizer, sampler, Ids{3}, options);
  EXPECT_EQ(result.tokens[1], 0);
  EXPECT_EQ(result.reason, FinishReason::kLength);
}

TEST_F(Generation, PrefillInChunksWithProgress) {
  const Ids prompt(23, 3);
  answer_with(23, {});
  for (const std::size_t chunk : {1, 7, 23, 100}) {
    auto chat = session();
    model.calls.clear();
    std::vector<std::size_t> progress;
    GenerateOptions options;
    options.prefill_chunk = chunk;
    options.on_prefill = [&](std::size_t done, std::size_t total) {
      EXPECT_EQ(total, 23u);
      progress.push_back(done);
    };
    generate(chat, tokenizer, sampler, prompt, options);
    EXPECT_EQ(model.calls.size(), (23 + chunk - 1) / chunk);
    EXPECT_EQ(progress.size(), model.calls.size());
    EXPECT_EQ(progress.back(), 23u);
    for (const auto tokens : model.calls) EXPECT_LE(tokens, chunk);
  }
}

TEST_F(Generation, CancelledWhileReadingKeepsWholeChunks) {
  auto chat = session();
  int asked = 0;
  GenerateOptions options;
  options.prefill_chunk = 4;
  options.cancelled = [&] { return ++asked > 5; };
  const Ids prompt(20, 3);
  const auto result = generate(chat, tokenizer, sampler, prompt, options);
  EXPECT_EQ(result.reason, FinishReason::kCancelled);
  EXPECT_TRUE(result.text.empty());
  const std::size_t read = chat.history().size();
  EXPECT_GT(read, 0u);
  EXPECT_LT(read, 20u);
  EXPECT_EQ(read % 4, 0u);
  EXPECT_EQ(result.statistics.prefilled_tokens, read);
  // Asked again, only the rest is read.
  EXPECT_EQ(generate(chat, tokenizer, sampler, prompt, at_most(0)).statistics.cached_tokens, read);
}

TEST_F(Generation, CancelledWhileAnsweringKeepsTheText) {
  answer_with(1, Ids(30, 2));
  auto chat = session();
  std::string text;
  GenerateOptions options;
  options.on_text = [&](std::string_view more) { text += more; };
  options.cancelled = [&] { return text.size() >= 5; };
  const auto result = generate(chat, tokenizer, sampler, Ids{3}, options);
  EXPECT_EQ(result.reason, FinishReason::kCancelled);
  EXPECT_EQ(result.text, "aaaaa");
  EXPECT_EQ(result.tokens.size(), 5u);
}

TEST_F(Generation, AThrowingReaderLeavesTheSessionUsable) {
  answer_with(1, {2, 3, 4});
  auto chat = session();
  GenerateOptions options;
  options.on_text = [](std::string_view) { throw std::runtime_error("pipe"); };
  EXPECT_THROW(generate(chat, tokenizer, sampler, Ids{3}, options), std::runtime_error);
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{3}).text, "abc");
}

TEST_F(Generation, OnlyTheDifferenceIsRead) {
  auto chat = session();
  answer_with(3, {2, 3});
  generate(chat, tokenizer, sampler, Ids{4, 4, 4});  // state: 4 4 4 2 3
  // The next turn repeats everything and adds three tokens.
  const Ids next = {4, 4, 4, 2, 3, 10, 4, 10};
  model.calls.clear();
  answer_with(next.size(), {});
  auto statistics = generate(chat, tokenizer, sampler, next).statistics;
  EXPECT_EQ(statistics.cached_tokens, 5u);
  EXPECT_EQ(model.calls, std::vector<std::size_t>{3});
  // The very same prompt: all but the last token is there.
  statistics = generate(chat, tokenizer, sampler, next).statistics;
  EXPECT_EQ(statistics.cached_tokens, next.size() - 1);
  // A prompt that leaves after two tokens.
  statistics = generate(chat, tokenizer, sampler, Ids{4, 4, 2, 2}).statistics;
  EXPECT_EQ(statistics.cached_tokens, 2u);
  EXPECT_EQ(chat.history()[2], 2);
  // One that is shorter than the history.
  statistics = generate(chat, tokenizer, sampler, Ids{4, 4}, at_most(0)).statistics;
  EXPECT_EQ(statistics.cached_tokens, 1u);
  EXPECT_EQ(chat.history().size(), 2u);
}

TEST_F(Generation, AModelThatCannotForgetExactlyReadsMore) {
  ToyModel coarse(11, 4);  // goes back to multiples of four
  Session chat(coarse, {64, kernels::KvType::kF16});
  const GenerateOptions none = at_most(0);
  generate(chat, tokenizer, sampler, Ids{2, 3, 4, 2, 3, 4, 2}, none);
  const auto statistics = generate(chat, tokenizer, sampler, Ids{2, 3, 4, 2, 3, 4, 4, 4}, none).statistics;
  EXPECT_EQ(statistics.cached_tokens, 4u);
  EXPECT_EQ(Ids(chat.history().begin(), chat.history().end()), (Ids{2, 3, 4, 2, 3, 4, 4, 4}));
}

TEST_F(Generation, ReuseAndChunksDoNotChangeTheAnswer) {
  // The toy's logits depend on every token before, so a wrong state would show at once.
  SamplerSettings settings;
  settings.seed = 99;
  settings.repeat_penalty = 1.3f;
  settings.temperature = 2;
  const Ids prompt = {2, 3, 4, 2, 2, 10, 3};
  GenerateOptions options = at_most(20);
  options.stop_at_eog = false;
  auto fresh = session();
  Sampler first(settings, 11);
  const auto expected = generate(fresh, tokenizer, first, prompt, options).tokens;
  auto used = session();
  Sampler other(greedy(), 11);
  generate(used, tokenizer, other, Ids{2, 3, 4, 10, 10}, options);
  Sampler second(settings, 11);
  options.prefill_chunk = 2;
  EXPECT_EQ(generate(used, tokenizer, second, prompt, options).tokens, expected);
}

TEST_F(Generation, IgnoredEndNeverComes) {
  SamplerSettings settings = greedy();
  settings.ignore_eos = true;
  Sampler endless(settings, 11, tokenizer.eog_ids());
  answer_with(1, {});
  auto chat = session(40);
  const auto result = generate(chat, tokenizer, endless, Ids{3});
  EXPECT_EQ(result.reason, FinishReason::kContextFull);
  EXPECT_EQ(result.tokens.size(), 40u);
}

TEST_F(Generation, ScoresOfTokens) {
  answer_with(2, {2, 5, 3});
  auto chat = session();
  GenerateOptions options;
  options.logprobs = 2;
  const auto result = generate(chat, tokenizer, sampler, Ids{3, 4}, options);
  ASSERT_EQ(result.scores.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.scores[i].token.id, result.tokens[i]);
    EXPECT_TRUE(result.scores[i].best);
    ASSERT_EQ(result.scores[i].alternatives.size(), 2u);
    EXPECT_EQ(result.scores[i].alternatives[0].id, result.tokens[i]);
    EXPECT_LE(result.scores[i].token.logprob, 0);
  }
}

TEST_F(Generation, TokensThatAreGivenComeNext) {
  answer_with(2, {2, 3, 2, 3, 2});
  auto chat = session();
  GenerateOptions options;
  std::size_t told = 0;
  options.on_token = [&](TokenId) { return ++told == 2 ? Ids{4, 4, 5} : Ids{}; };
  const auto result = generate(chat, tokenizer, sampler, Ids{3, 4}, options);
  EXPECT_EQ(result.tokens, (Ids{2, 3, 4, 4, 5}));
  EXPECT_EQ(result.text, "abcc d");
  EXPECT_EQ(told, 5u);
  EXPECT_EQ(Ids(chat.history().begin(), chat.history().end()), (Ids{3, 4, 2, 3, 4, 4, 5}));
}

TEST_F(Generation, ChosenControlTokensAreShown) {
  answer_with(1, {2, 1, 3});
  auto chat = session();
  GenerateOptions options;
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{4}, options).text, "ab");
  options.shown_tokens = {1};
  EXPECT_EQ(generate(chat, tokenizer, sampler, Ids{4}, options).text, "a<x>b");
}

TEST_F(Generation, AForkGoesItsOwnWay) {
  answer_with(2, {2, 5, 3});
  auto chat = session();
  generate(chat, tokenizer, sampler, Ids{3, 4});
  const auto other = chat.fork();
  EXPECT_TRUE(std::ranges::equal(other->history(), chat.history()));
  EXPECT_EQ(other->reuse(Ids{3, 4, 2, 2}), 3u);
  EXPECT_EQ(chat.history().size(), 5u);
  EXPECT_EQ(other->history().size(), 3u);
}

}  // namespace
}  // namespace hk::engine
