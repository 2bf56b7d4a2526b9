// Sequences: contexts of several pages, forks, going back, cancellation, and refusals of a batch before anything
// changes.
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "kernels/kernels.h"
#include "tests/models/fixture_model.h"
#include "tests/support/reference_kernels.h"

namespace hk::test {
namespace {

using engine::BatchItem;
using engine::LogitsFor;
using engine::TokenId;
using kernels::KvType;

std::vector<TokenId> random_tokens(std::size_t n, std::size_t vocab) {
  std::mt19937 random(7);
  std::vector<TokenId> tokens(n);
  for (TokenId& id : tokens) id = static_cast<TokenId>(random() % vocab);
  return tokens;
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Sequences : public testing::Test {
 protected:
  void SetUp() override {
    HK_FIXTURE(index, "fixtures/models/llama-plain.gguf.zst");
    fixture_ = FixtureModel::load("llama-plain");
    ASSERT_NE(fixture_, nullptr);
    model_ = models::open(fixture_->reader(), pool_);
    tokens_ = random_tokens(kTokens, model_->info().vocab_size);
  }
  std::unique_ptr<engine::Sequence> sequence(std::size_t context = kContext) {
    return model_->new_sequence({context, KvType::kF16});
  }
  std::vector<float> all(engine::Sequence& s, std::span<const TokenId> tokens, std::size_t batch) {
    return run(*model_, s, tokens, batch);
  }

  static constexpr std::size_t kTokens = 777;  // four pages, the last one partly
  static constexpr std::size_t kContext = 900;
  engine::ThreadPool pool_{1};
  std::unique_ptr<FixtureModel> fixture_;
  std::unique_ptr<engine::Model> model_;
  std::vector<TokenId> tokens_;
};

/// Contexts of several pages for the kinds of attention: plain, windows beside full layers, position biases, own caps.
class LongContexts : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    HK_FIXTURE(present, std::string("fixtures/models/") + GetParam() + ".gguf.zst");
    fixture_ = FixtureModel::load(GetParam());
    ASSERT_NE(fixture_, nullptr);
    model_ = models::open(fixture_->reader(), pool_);
    tokens_ = random_tokens(kTokens, model_->info().vocab_size);
  }
  bool recurrent() const {
    for (const auto& [key, value] : fixture_->record.at("metadata").items()) {
      if (key.find(".ssm.") != std::string::npos || key.find(".shortconv.") != std::string::npos ||
          key.find(".wkv.") != std::string::npos)
        return true;
    }
    return false;
  }
  static constexpr std::size_t kTokens = 777;  // four pages, the last one partly
  static constexpr engine::SequenceOptions kOptions{900, KvType::kF16};
  engine::ThreadPool pool_{1};
  std::unique_ptr<FixtureModel> fixture_;
  std::unique_ptr<engine::Model> model_;
  std::vector<TokenId> tokens_;
};

TEST_P(LongContexts, GiveTheSameBitsHoweverTheyAreCut) {
  const auto whole = run_fresh(*model_, kOptions, tokens_, kTokens);
  for (const std::size_t batch : {std::size_t{1}, std::size_t{5}, std::size_t{255}, std::size_t{256}, std::size_t{300}})
    EXPECT_EQ(run_fresh(*model_, kOptions, tokens_, batch), whole) << batch;
  for (const int threads : {2, 3, 16}) {  // with 16, single tokens spread their pages over the workers
    engine::ThreadPool pool(threads);
    const auto model = models::open(fixture_->reader(), pool);
    EXPECT_EQ(run_fresh(*model, kOptions, tokens_, kTokens), whole) << threads;
    EXPECT_EQ(run_fresh(*model, kOptions, tokens_, 1), whole) << threads;
    EXPECT_EQ(run_fresh(*model, kOptions, tokens_, 40), whole) << threads;
  }
}

TEST_P(LongContexts, AgreeWithTheReferenceKernels) {
  const auto reference = models::open(fixture_->reader(), pool_, reference_kernels());
  const auto expected = run_fresh(*reference, {900, KvType::kF32}, tokens_, kTokens);
  for (const kernels::KernelTable* level : kernels::usable_levels()) {
    const auto model = models::open(fixture_->reader(), pool_, *level);
    const auto logits = run_fresh(*model, {900, KvType::kF32}, tokens_, kTokens);
    if (fixture_->quantized()) {  // rounding of activations falls the other way here and there
      EXPECT_LE(rms_difference(logits, expected), fixture_->reference_rms()) << level->level;
    } else {
      EXPECT_LE(max_difference(logits, expected), 1e-3) << level->level;
    }
  }
}

TEST_P(LongContexts, GoingBackAndCancellationKeepThePast) {
  const auto whole = run_fresh(*model_, kOptions, tokens_, kTokens);
  const auto vocab = static_cast<std::ptrdiff_t>(model_->info().vocab_size);
  const auto s = model_->new_sequence(kOptions);
  run(*model_, *s, tokens_, 100);
  EXPECT_LE(s->state_bytes(), model_->state_bytes(kOptions, kTokens));
  for (const std::size_t wanted : {std::size_t{760}, std::size_t{601}, std::size_t{270}, std::size_t{3}}) {
    const std::size_t kept = s->truncate(wanted);  // windows may have given up what lies so far back
    if (recurrent()) {
      EXPECT_TRUE(kept <= wanted && wanted - kept <= 2 * (kTokens - wanted) + 256) << kept << " for " << wanted;
    } else {
      EXPECT_TRUE(kept == wanted || kept == 0) << wanted;
    }
    EXPECT_EQ(s->length(), kept);
    int polls = 0;
    const BatchItem item{s.get(), std::span(tokens_).subspan(kept), LogitsFor::kNone};
    model_->forward({&item, 1}, {[&] { return ++polls == 9; }, {}});
    EXPECT_TRUE(s->length() == kept || s->length() == kTokens);
    s->truncate(kept);
    const std::size_t from = s->length();
    const auto rest = run(*model_, *s, std::span(tokens_).subspan(from), 300);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<std::ptrdiff_t>(from) * vocab))
        << wanted;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LongContexts,
                         testing::Values("llama-plain", "gemma2-base", "gemma3-base", "bloom-base", "olmo2-swa",
                                         "llama-q-q4_k", "gpt-oss-f32", "deepseek2-v3", "deepseek2-legacy", "lfm2-base",
                                         "qwen3next-base", "jamba-base", "falcon-h1-base", "rwkv7-base", "gemma3n-base",
                                         "gemma4-dense"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Windows, KeepOnlyWhatCanStillBeSeen) {
  HK_FIXTURE(present, "fixtures/models/gemma2-base.gguf.zst");
  const auto fixture = FixtureModel::load("gemma2-base");
  ASSERT_NE(fixture, nullptr);
  engine::ThreadPool pool(1);
  const auto model = models::open(fixture->reader(), pool);
  const engine::SequenceOptions options{3000, KvType::kF16};
  const auto tokens = random_tokens(2800, model->info().vocab_size);
  const auto s = model->new_sequence(options);
  const BatchItem item{s.get(), tokens, LogitsFor::kNone};
  model->forward({&item, 1});
  EXPECT_LE(s->state_bytes(), model->state_bytes(options, tokens.size()));
  // Three of five layers see 20 positions: of their eleven pages they keep two or three.
  const std::uint64_t page = std::uint64_t{2} * (24 + 24) * 256 * 2;
  EXPECT_LE(s->state_bytes(), page * (2 * 11 + 3 * 3));
  EXPECT_EQ(s->truncate(2700), 2700u);
  EXPECT_EQ(s->truncate(1000), 0u);
  EXPECT_EQ(s->state_bytes(), 0u);
}

TEST_F(Sequences, ForksPartAndKeepTheirOwnPast) {
  const auto whole = all(*sequence(), tokens_, kTokens);
  const std::size_t vocab = model_->info().vocab_size;
  for (const std::size_t cut : {std::size_t{1}, std::size_t{256}, std::size_t{600}}) {
    const auto trunk = sequence();
    all(*trunk, std::span(tokens_).first(cut), cut);
    const auto branch = trunk->fork();
    EXPECT_EQ(branch->length(), cut);
    // The branch writes other tokens into what was the shared last page; the trunk must not notice.
    std::vector<TokenId> other(100, 3);
    const auto first = all(*branch, other, 9);
    const auto rest = all(*trunk, std::span(tokens_).subspan(cut), 64);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<std::ptrdiff_t>(cut * vocab))) << cut;
    const auto again = sequence();
    all(*again, std::span(tokens_).first(cut), cut);
    EXPECT_EQ(all(*again, other, 100), first) << cut;
  }
}

TEST_F(Sequences, GoingBackForgets) {
  const auto whole = all(*sequence(), tokens_, kTokens);
  const std::size_t vocab = model_->info().vocab_size;
  const auto s = sequence();
  all(*s, tokens_, kTokens);
  const auto full_bytes = s->state_bytes();
  EXPECT_EQ(full_bytes, model_->state_bytes({kContext, KvType::kF16}, kTokens));
  for (const std::size_t length :
       {std::size_t{600}, std::size_t{512}, std::size_t{511}, std::size_t{1}, std::size_t{0}}) {
    EXPECT_EQ(s->truncate(length), length);
    EXPECT_EQ(s->length(), length);
    EXPECT_EQ(s->state_bytes(), model_->state_bytes({kContext, KvType::kF16}, length));
    const auto rest = all(*s, std::span(tokens_).subspan(length), 200);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<std::ptrdiff_t>(length * vocab)))
        << length;
  }
  EXPECT_EQ(s->truncate(5000), kTokens);
}

TEST_F(Sequences, CancellationLeavesEverythingAsItWas) {
  const auto whole = all(*sequence(), tokens_, kTokens);
  const std::size_t vocab = model_->info().vocab_size;
  for (const int polls : {0, 1, 5, 9, 20}) {  // within the first, second and third chunk of the call
    const auto s = sequence(), other = sequence();
    all(*s, std::span(tokens_).first(100), 100);
    int asked = 0;
    std::size_t last_done = 0;
    const BatchItem items[] = {{other.get(), std::span(tokens_).first(50), LogitsFor::kLast},
                               {s.get(), std::span(tokens_).subspan(100), LogitsFor::kAll}};
    const auto rows = model_->forward(items, {[&] { return asked++ == polls; },
                                              [&](std::size_t done, std::size_t total) {
                                                EXPECT_EQ(total, 50 + kTokens - 100);
                                                EXPECT_GT(done, last_done);
                                                last_done = done;
                                              }});
    EXPECT_TRUE(rows.empty());
    EXPECT_EQ(asked, polls + 1);
    EXPECT_EQ(s->length(), 100u);
    EXPECT_EQ(other->length(), 0u);
    const auto rest = all(*s, std::span(tokens_).subspan(100), kTokens);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<std::ptrdiff_t>(100 * vocab)))
        << polls;
  }
}

TEST_F(Sequences, ProgressReachesTheEnd) {
  std::vector<std::size_t> steps;
  const auto s = sequence();
  const BatchItem item{s.get(), tokens_, LogitsFor::kNone};
  EXPECT_TRUE(model_->forward({&item, 1}, {{}, [&](std::size_t done, std::size_t) { steps.push_back(done); }}).empty());
  // After each layer in proportion, and at the end of each chunk.
  EXPECT_EQ(steps.size(), 4 * model_->info().layers);
  EXPECT_TRUE(std::ranges::is_sorted(steps));
  for (const std::size_t end : {256U, 512U, 768U, 777U}) EXPECT_EQ(std::ranges::count(steps, end), 1) << end;
  EXPECT_EQ(steps.back(), 777U);
  EXPECT_EQ(s->length(), kTokens);
}

TEST_F(Sequences, BadBatchesAreRefusedBeforeAnythingChanges) {
  const auto s = sequence(50), other = sequence(50);
  all(*s, std::span(tokens_).first(40), 40);
  const auto vocab = static_cast<TokenId>(model_->info().vocab_size);
  const auto attempt = [&](std::vector<TokenId> ids) {
    const BatchItem items[] = {{other.get(), std::span(tokens_).first(3), LogitsFor::kAll},
                               {s.get(), ids, LogitsFor::kAll}};
    return refusal([&] { model_->forward(items); });
  };
  EXPECT_NE(attempt({1, vocab}).find("token id 512 is outside the model's vocabulary of 512"), std::string::npos);
  EXPECT_NE(attempt({-1}).find("token id -1"), std::string::npos);
  EXPECT_NE(attempt(std::vector<TokenId>(11, 1)).find("context of 50 positions is full: it holds 40 and 11 more"),
            std::string::npos);
  EXPECT_EQ(s->length(), 40u);
  EXPECT_EQ(other->length(), 0u);
  EXPECT_EQ(attempt(std::vector<TokenId>(10, 1)), "");
  EXPECT_EQ(s->length(), 50u);

  const BatchItem twice[] = {{other.get(), std::span(tokens_).first(1), LogitsFor::kAll},
                             {other.get(), std::span(tokens_).first(1), LogitsFor::kAll}};
  EXPECT_NE(refusal([&] { model_->forward(twice); }).find("same sequence twice"), std::string::npos);
  const auto stranger = models::open(fixture_->reader(), pool_);
  const auto foreign = stranger->new_sequence({50, KvType::kF16});
  const BatchItem strange{foreign.get(), std::span(tokens_).first(1), LogitsFor::kAll};
  EXPECT_NE(refusal([&] { model_->forward({&strange, 1}); }).find("not made by this model"), std::string::npos);
  EXPECT_NE(refusal([&] { model_->new_sequence({0, KvType::kF16}); }), "");
  EXPECT_TRUE(model_->forward({}).empty());
}

}  // namespace
}  // namespace hk::test
