// Batching over a toy model: answers do not depend on company, slots, order, chunks, caches or memory; prefixes are
// computed once; failures and cancellations hit only whom they concern.
#include "engine/generate/scheduler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "engine/generate/random.h"
#include "toy_model.h"

namespace hk::engine {
namespace {

using test::ToyModel;
using test::ToyTokenizer;
using Ids = std::vector<TokenId>;

constexpr std::size_t kVocabulary = 11;
constexpr std::size_t kContext = 1200;

class Batching : public testing::Test {
 protected:
  ToyTokenizer tokenizer{{"</s>", "<x>", "a", "b", "c", " d", "Use", "r:", "\xe2\x82", "\xac", "\n"}};
  ThreadPool threads{2};
  std::mt19937 random{3};

  std::size_t pick(std::size_t from, std::size_t to) {
    return std::uniform_int_distribution<std::size_t>(from, to)(random);
  }
  Ids random_ids(std::size_t count) {
    Ids ids(count);
    for (auto& id : ids) id = static_cast<TokenId>(pick(1, kVocabulary - 1));
    return ids;
  }
  static SchedulerOptions options(std::size_t slots = 16) {
    SchedulerOptions options;
    options.sequence = {kContext, kernels::KvType::kF16};
    options.slots = slots;
    return options;
  }
  static Request request(Ids prompt, std::size_t max_tokens, std::uint64_t seed = 1) {
    Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.sampling.seed = seed;
    return request;
  }
  /// A mix: shared beginnings, equal prompts, stop strings, penalties, several answers.
  std::vector<Request> mixed(std::size_t count) {
    const Ids stem = random_ids(300), other = random_ids(40);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < count; ++i) {
      Ids prompt = i % 3 == 0 ? stem : i % 3 == 1 ? other : Ids{};
      const auto own = random_ids(pick(1, 60));
      if (i % 7 != 0 || prompt.empty()) prompt.insert(prompt.end(), own.begin(), own.end());
      auto made = request(std::move(prompt), pick(0, 40), i);
      made.sampling.ignore_eos = i % 2 == 0;
      if (i % 5 == 0) made.sampling.temperature = 0;
      if (i % 6 == 0) made.sampling.repeat_penalty = 1.3f;
      if (i % 4 == 0) made.stop = {"ab", "Use"};
      if (i % 8 == 0) made.samples = 3;
      if (i % 9 == 0) made.logprobs = 2;
      requests.push_back(std::move(made));
    }
    return requests;
  }
  /// What the token loop of a single session answers.
  std::vector<Answer> alone(const Request& asked) {
    std::vector<Answer> answers;
    for (std::size_t i = 0; i < asked.samples; ++i) {
      ToyModel model(kVocabulary);
      auto settings = asked.sampling;
      if (i > 0) settings.seed = seeds.at({*settings.seed, i});
      Sampler sampler(settings, kVocabulary, tokenizer.eog_ids());
      Session session(model, {kContext, kernels::KvType::kF16});
      GenerateOptions options;
      options.max_tokens = asked.max_tokens;
      options.stop = asked.stop;
      const auto result = generate(session, tokenizer, sampler, asked.prompt, options);
      answers.push_back({result.text, result.tokens, result.reason, result.end_token, result.stop, {}, 0});
    }
    return answers;
  }
  std::map<std::pair<std::uint64_t, std::size_t>, std::uint64_t> seeds;  // of further answers, from the responses

  std::vector<Response> run(ToyModel& model, const std::vector<Request>& requests, SchedulerOptions with,
                            SchedulerStatistics* statistics = nullptr) {
    Scheduler scheduler(model, tokenizer, &threads, with);
    std::vector<Response> responses(requests.size());
    std::size_t answered = 0;
    for (std::size_t i = 0; i < requests.size(); ++i)
      scheduler.submit(requests[i], [&, i](Response&& response) {
        responses[i] = std::move(response);
        ++answered;
      });
    while (scheduler.step()) {
      EXPECT_LE(scheduler.running(), with.slots);
      EXPECT_LE(scheduler.memory_used(), with.memory_limit);
    }
    EXPECT_EQ(answered, requests.size());
    EXPECT_EQ(scheduler.requests(), 0u);
    if (statistics != nullptr) *statistics = scheduler.statistics();
    return responses;
  }
  void expect_same(const std::vector<Response>& responses, const std::vector<Request>& requests) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const auto& got = responses[i];
      ASSERT_EQ(got.error, "") << i;
      ASSERT_EQ(got.answers.size(), requests[i].samples);
      for (std::size_t k = 1; k < got.answers.size(); ++k) seeds[{*requests[i].sampling.seed, k}] = got.answers[k].seed;
      const auto want = alone(requests[i]);
      for (std::size_t k = 0; k < want.size(); ++k) {
        EXPECT_EQ(got.answers[k].text, want[k].text) << i;
        EXPECT_EQ(got.answers[k].tokens, want[k].tokens) << i;
        EXPECT_EQ(got.answers[k].reason, want[k].reason) << i;
        EXPECT_EQ(got.answers[k].end_token, want[k].end_token) << i;
        EXPECT_EQ(got.answers[k].stop, want[k].stop) << i;
        EXPECT_EQ(got.answers[k].scores.size(), requests[i].logprobs ? want[k].tokens.size() : 0) << i;
      }
    }
  }
};

TEST_F(Batching, AnswersAreThoseOfASingleSession) {
  const auto requests = mixed(120);
  for (const std::size_t slots : {1, 2, 7, 16, 64}) {
    for (const std::size_t step_tokens : {1, 33, 256}) {
      auto with = options(slots);
      with.step_tokens = step_tokens;
      ToyModel model(kVocabulary);
      expect_same(run(model, requests, with), requests);
      EXPECT_LE(model.most_rows, std::max(slots, step_tokens));
    }
  }
}

TEST_F(Batching, NorDoTheyDependOnTheOrder) {
  auto requests = mixed(80);
  std::shuffle(requests.begin(), requests.end(), random);
  ToyModel model(kVocabulary);
  expect_same(run(model, requests, options(5)), requests);
}

TEST_F(Batching, NorOnTheCache) {
  const auto requests = mixed(80);
  for (const std::uint64_t limit : {0, 300, 2000}) {
    auto with = options(8);
    with.prefix_cache_limit = limit;
    ToyModel model(kVocabulary);
    SchedulerStatistics statistics;
    expect_same(run(model, requests, with, &statistics), requests);
    EXPECT_EQ(statistics.shared_tokens > 0, limit > 0);
  }
}

TEST_F(Batching, NorOnStateThatCannotBeCutBack) {
  const auto requests = mixed(80);
  ToyModel model(kVocabulary, 100000);
  SchedulerStatistics statistics;
  expect_same(run(model, requests, options(8), &statistics), requests);
  EXPECT_GT(statistics.shared_tokens, 25 * 300u);  // snapshots where prompts part
}

TEST_F(Batching, NorOnTheMemory) {
  const auto requests = mixed(80);
  for (const std::uint64_t limit : {512, 1024, 2048}) {
    auto with = options(16);
    with.memory_limit = limit;
    ToyModel model(kVocabulary);
    SchedulerStatistics statistics;
    expect_same(run(model, requests, with, &statistics), requests);
  }
}

TEST_F(Batching, YoungestGivesItsMemoryBackAndLosesNothing) {
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 4; ++i) {
    requests.push_back(request(random_ids(200), 500, i));
    requests.back().sampling.ignore_eos = true;
  }
  auto with = options(4);
  with.memory_limit = 7 * 256;  // all four start, not all of them can grow to three pages
  with.prefix_cache_limit = 0;
  ToyModel model(kVocabulary);
  SchedulerStatistics statistics;
  const auto responses = run(model, requests, with, &statistics);
  expect_same(responses, requests);
  EXPECT_GT(statistics.preemptions, 0u);
  EXPECT_GT(statistics.recomputed_tokens, 0u);
  EXPECT_EQ(statistics.prefilled_tokens, 800u);
}

TEST_F(Batching, ARequestThatNeverFitsFailsAlone) {
  auto with = options(4);
  with.memory_limit = 512;
  ToyModel model(kVocabulary);
  const auto responses =
      run(model, {request(random_ids(20), 5), request(random_ids(600), 5), request(random_ids(20), 5)}, with);
  EXPECT_EQ(responses[0].error, "");
  EXPECT_NE(responses[1].error.find("memory"), std::string::npos) << responses[1].error;
  EXPECT_EQ(responses[2].error, "");
  auto growing = request(random_ids(200), 600);
  growing.sampling.ignore_eos = true;
  const auto grown = run(model, {growing}, with);
  EXPECT_NE(grown[0].error.find("memory limit"), std::string::npos) << grown[0].error;
}

TEST_F(Batching, ASharedPrefixIsComputedOnce) {
  for (const std::size_t truncation_step : {1, 100000}) {
    const Ids stem = random_ids(1000);
    std::vector<Request> requests;
    std::size_t own = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      Ids prompt = stem;
      prompt.push_back(static_cast<TokenId>(1 + i % 10));  // they part here
      const auto rest = random_ids(pick(10, 20));
      prompt.insert(prompt.end(), rest.begin(), rest.end());
      own += 1 + rest.size();
      requests.push_back(request(std::move(prompt), 8, i));
    }
    ToyModel model(kVocabulary, truncation_step);
    SchedulerStatistics statistics;
    expect_same(run(model, requests, options(16), &statistics), requests);
    EXPECT_LE(statistics.prefilled_tokens, (stem.size() + own) * 105 / 100) << truncation_step;
    EXPECT_EQ(statistics.prefilled_tokens + statistics.shared_tokens, 100 * stem.size() + own);
  }
}

TEST_F(Batching, ARequestThatComesLaterSharesToo) {
  ToyModel model(kVocabulary);
  Scheduler scheduler(model, tokenizer, nullptr, options());
  const Ids prompt = random_ids(100);
  Response first, second;
  scheduler.submit(request(prompt, 5), [&](Response&& response) { first = std::move(response); });
  while (scheduler.step()) {
  }
  Ids longer = prompt;
  longer.insert(longer.end(), first.answers[0].tokens.begin(), first.answers[0].tokens.end());
  longer.push_back(2);
  scheduler.submit(request(longer, 5), [&](Response&& response) { second = std::move(response); });
  while (scheduler.step()) {
  }
  EXPECT_GE(second.cached_tokens, 100u);
  EXPECT_EQ(second.answers[0].text, alone(request(longer, 5))[0].text);
}

TEST_F(Batching, JoinsWhileOthersRun) {
  ToyModel model(kVocabulary);
  Scheduler scheduler(model, tokenizer, &threads, options(4));
  const auto requests = mixed(60);
  std::vector<Response> responses(requests.size());
  std::size_t next = 0;
  while (next < requests.size() || scheduler.requests() > 0) {
    if (next < requests.size() && pick(0, 3) == 0) {
      const std::size_t i = next++;
      scheduler.submit(requests[i], [&, i](Response&& response) { responses[i] = std::move(response); });
    }
    scheduler.step();
  }
  expect_same(responses, requests);
}

TEST_F(Batching, OldestFirst) {
  ToyModel model(kVocabulary);
  Scheduler scheduler(model, tokenizer, nullptr, options(2));
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < 10; ++i) {
    auto made = request(random_ids(5), 4, i);
    made.sampling.ignore_eos = true;
    scheduler.submit(std::move(made), [&order, i](Response&&) { order.push_back(i); });
  }
  while (scheduler.step()) {
  }
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

constexpr double kScoreError = 3e-7;  // the exponentials are right to two units in the last place of a float

TEST_F(Batching, ScoresAreThoseOfTheModel) {
  for (const std::size_t slots : {1, 4}) {
    ToyModel model(kVocabulary);
    std::vector<Request> requests;
    for (std::size_t i = 0; i < 30; ++i) {
      Request made;
      const Ids context = random_ids(pick(1, 50));
      for (std::size_t k = 0; k < 1 + i % 4; ++k) {
        Ids whole = context;
        const auto rest = random_ids(pick(0, 9));
        whole.insert(whole.end(), rest.begin(), rest.end());
        made.scored.push_back({whole, context.size()});
      }
      made.logprobs = 3;
      requests.push_back(std::move(made));
    }
    const auto responses = run(model, requests, options(slots));
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(responses[i].error, "");
      for (std::size_t k = 0; k < requests[i].scored.size(); ++k) {
        const auto& text = requests[i].scored[k];
        const auto& score = responses[i].scores[k];
        double sum = 0;
        bool greedy = true;
        ASSERT_EQ(score.tokens.size(), text.tokens.size() - text.from);
        for (std::size_t at = text.from; at < text.tokens.size(); ++at) {
          const auto row = model.row_for(Ids(text.tokens.begin(), text.tokens.begin() + static_cast<long>(at)));
          double total = 0;
          for (const float logit : row) total += std::exp(static_cast<double>(logit));
          const auto id = static_cast<std::size_t>(text.tokens[at]);
          const double want = static_cast<double>(row[id]) - std::log(total);
          sum += want;
          const auto best = std::max_element(row.begin(), row.end()) - row.begin();
          greedy = greedy && best == static_cast<long>(id);
          const auto& token = score.tokens[at - text.from];
          EXPECT_NEAR(token.token.logprob, want, kScoreError);
          EXPECT_EQ(token.token.id, text.tokens[at]);
          ASSERT_EQ(token.alternatives.size(), 3u);
          EXPECT_EQ(token.alternatives[0].id, best);
          EXPECT_GE(token.alternatives[0].logprob, token.alternatives[2].logprob);
        }
        EXPECT_NEAR(score.logprob, sum, kScoreError * static_cast<double>(score.tokens.size() + 1));
        EXPECT_EQ(score.greedy, greedy);
      }
    }
  }
}

TEST_F(Batching, PromptScoresWithAndWithoutAnAnswer) {
  ToyModel model(kVocabulary);
  auto with_answer = request(random_ids(40), 4);
  with_answer.logprobs = 0;
  with_answer.prompt_logprobs = true;
  auto without = with_answer;
  without.max_tokens = 0;
  auto sharing = with_answer;  // must not take from the cache what has to be scored
  const auto responses = run(model, {with_answer, without, sharing}, options());
  for (const auto& response : responses) {
    ASSERT_EQ(response.prompt_scores.size(), 39u);
    for (std::size_t i = 0; i < 39; ++i) {
      EXPECT_EQ(response.prompt_scores[i].token.id, with_answer.prompt[i + 1]);
      EXPECT_EQ(response.prompt_scores[i].token.logprob, responses[0].prompt_scores[i].token.logprob);
    }
  }
  EXPECT_EQ(responses[0].answers[0].text, alone(with_answer)[0].text);
  EXPECT_EQ(responses[0].answers[0].scores.size(), responses[0].answers[0].tokens.size());
  EXPECT_EQ(responses[1].answers[0].text, "");
  EXPECT_EQ(responses[1].answers[0].reason, FinishReason::kLength);
}

TEST_F(Batching, FullContextIsToldLikeInASession) {
  ToyModel model(kVocabulary);
  auto made = request(random_ids(10), 100);
  made.sampling.ignore_eos = true;
  auto with = options();
  with.sequence.context_length = 20;
  const auto response = run(model, {made}, with)[0];
  EXPECT_EQ(response.answers[0].reason, FinishReason::kContextFull);
  EXPECT_EQ(response.answers[0].tokens.size(), 11u);
}

TEST_F(Batching, WhatCanNeverBeAnsweredIsRefused) {
  ToyModel model(kVocabulary);
  Scheduler scheduler(model, tokenizer, nullptr, options());
  const auto refused = [&](Request made, const char* word) {
    try {
      scheduler.submit(std::move(made), {});
      ADD_FAILURE() << word;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused(request({}, 1), "empty");
  refused(request(random_ids(kContext + 1), 1), "context holds 1200");
  refused(request({1, 11}, 1), "token id 11");
  refused(request({-1}, 1), "token id -1");
  auto bias = request({1}, 1);
  bias.sampling.logit_bias = {{77, 1.0f}};
  bias.samples = 2;
  refused(bias, "77");
  auto hot = request({1}, 1);
  hot.sampling.temperature = -1;
  refused(hot, "temperature");
  Request score;
  score.scored = {{{1, 2}, 0}};
  refused(score, "score");
  score.scored = {{random_ids(kContext + 2), 1}};
  refused(score, "context holds");
  EXPECT_EQ(scheduler.requests(), 0u);
  EXPECT_EQ(scheduler.waiting(), 0u);
  EXPECT_FALSE(scheduler.step());
}

TEST_F(Batching, OneBadSequenceDoesNotSpoilTheBatch) {
  ToyModel model(kVocabulary);
  model.poison = 10;
  std::vector<Request> requests;
  for (std::uint64_t i = 0; i < 12; ++i) {
    requests.push_back(request({2, 3, static_cast<TokenId>(i == 5 ? 10 : 4), static_cast<TokenId>(2 + i % 4)}, 6, i));
    requests.back().sampling.logit_bias = {{10, -std::numeric_limits<float>::infinity()}};
  }
  const auto responses = run(model, requests, options(12));
  for (std::size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(responses[i].error, i == 5 ? "toy: poison" : "") << i;
}

TEST_F(Batching, ASamplerThatCannotPickFailsItsRequestOnly) {
  ToyModel model(kVocabulary);
  auto impossible = request({2, 3}, 4);
  for (std::size_t id = 0; id < kVocabulary; ++id)
    impossible.sampling.logit_bias.emplace_back(static_cast<TokenId>(id), -std::numeric_limits<float>::infinity());
  impossible.samples = 3;
  const auto fine = request({2, 3}, 4);
  const auto responses = run(model, {fine, impossible, fine}, options());
  EXPECT_NE(responses[1].error, "");
  EXPECT_EQ(responses[0].answers[0].text, responses[2].answers[0].text);
  EXPECT_EQ(responses[2].error, "");
}

TEST_F(Batching, WantOfMemoryInThePassCostsTheYoungest) {
  ToyModel model(kVocabulary);
  const auto requests = mixed(20);
  model.out_of_memory = 5;
  SchedulerStatistics statistics;
  expect_same(run(model, requests, options(8), &statistics), requests);
  EXPECT_GT(statistics.preemptions, 0u);
  model.out_of_memory = 1000;
  const auto responses = run(model, requests, options(8));
  for (std::size_t i = 0; i < requests.size(); ++i)
    EXPECT_EQ(responses[i].error, *requests[i].max_tokens == 0 ? "" : "toy: out of memory");
}

TEST_F(Batching, CancelKeepsTheTextSoFar) {
  ToyModel model(kVocabulary);
  Scheduler scheduler(model, tokenizer, nullptr, options(2));
  Response first, second, waiting;
  auto endless = request(random_ids(5), 500);
  endless.sampling.ignore_eos = true;
  std::string streamed;
  auto listened = endless;
  listened.on_text = [&](std::size_t, std::string_view text) { streamed += text; };
  const auto one = scheduler.submit(listened, [&](Response&& response) { first = std::move(response); });
  auto short_one = endless;
  short_one.max_tokens = 20;
  scheduler.submit(short_one, [&](Response&& response) { second = std::move(response); });
  scheduler.submit(endless, [&](Response&& response) { waiting = std::move(response); });
  for (int i = 0; i < 10; ++i) scheduler.step();
  EXPECT_EQ(scheduler.cancel_waiting(), 1u);
  scheduler.cancel(one);
  scheduler.cancel(one);
  scheduler.cancel(4711);
  while (scheduler.step()) {
  }
  EXPECT_TRUE(first.cancelled);
  EXPECT_EQ(first.answers[0].reason, FinishReason::kCancelled);
  EXPECT_FALSE(first.answers[0].text.empty());
  EXPECT_EQ(first.answers[0].text, streamed);
  EXPECT_TRUE(waiting.cancelled);
  EXPECT_EQ(waiting.answers[0].text, "");
  EXPECT_FALSE(second.cancelled);
}

TEST_F(Batching, AListenerMayCancelAndSubmit) {
  ToyModel model(kVocabulary);
  Scheduler scheduler(model, tokenizer, nullptr, options(3));
  std::uint64_t handle = 0;
  std::size_t answered = 0;
  auto endless = request(random_ids(5), 500);
  endless.sampling.ignore_eos = true;
  auto listened = endless;
  listened.on_text = [&](std::size_t, std::string_view) { scheduler.cancel(handle); };
  handle = scheduler.submit(listened, [&](Response&& response) {
    EXPECT_TRUE(response.cancelled);
    ++answered;
    scheduler.submit(request({2}, 3), [&](Response&&) { ++answered; });
  });
  while (scheduler.step()) {
  }
  EXPECT_EQ(answered, 2u);
}

TEST_F(Batching, ACancelledPassChangesNothing) {
  ToyModel model(kVocabulary);
  Scheduler scheduler(model, tokenizer, nullptr, options());
  const auto asked = request(random_ids(30), 20);
  Response response;
  scheduler.submit(asked, [&](Response&& done) { response = std::move(done); });
  bool stop = false;
  while (scheduler.requests() > 0) scheduler.step([&] { return stop = !stop; });  // every other pass
  EXPECT_EQ(response.answers[0].text, alone(asked)[0].text);
}

TEST_F(Batching, CountsAndTimes) {
  ToyModel model(kVocabulary);
  auto made = request(random_ids(30), 7);
  made.sampling.ignore_eos = true;
  SchedulerStatistics statistics;
  const auto response = run(model, {made}, options(), &statistics)[0];
  EXPECT_EQ(response.prompt_tokens, 30u);
  EXPECT_EQ(response.cached_tokens, 0u);
  EXPECT_EQ(response.generated_tokens, 7u);
  EXPECT_GE(response.waited_seconds, 0);
  EXPECT_GE(response.prefill_seconds, 0);
  EXPECT_GE(response.decode_seconds, 0);
  EXPECT_EQ(statistics.prefilled_tokens, 30u);
  EXPECT_EQ(statistics.decoded_tokens, 6u);
  EXPECT_EQ(statistics.sampled_tokens, 7u);
  EXPECT_EQ(statistics.requests, 1u);
}

}  // namespace
}  // namespace hk::engine
