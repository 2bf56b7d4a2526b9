// The buffers of a forward pass: foretold before they are taken, untouched by the system once warm.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "engine/runtime/profile.h"
#include "tests/models/fixture_model.h"

namespace hk::test {
namespace {

using engine::BatchItem;
using engine::LogitsFor;
using engine::TokenId;
using kernels::KvType;

std::vector<TokenId> repeated(const FixtureModel& fixture, std::size_t n) {
  std::vector<TokenId> tokens(n);
  for (std::size_t i = 0; i < n; ++i) tokens[i] = fixture.tokens[i % fixture.tokens.size()];
  return tokens;
}

class Scratch : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    HK_FIXTURE(index, "fixtures/models/index.json");
    fixture_ = FixtureModel::load(GetParam());
    ASSERT_NE(fixture_, nullptr);
  }
  std::unique_ptr<FixtureModel> fixture_;
};

TEST_P(Scratch, IsForetold) {
  for (const int threads : {1, 2}) {
    engine::ThreadPool pool(threads);
    const auto model = models::open(fixture_->reader(), pool);
    // Learned positions end somewhere; the others read more than a chunk of rows.
    std::size_t positions = 300;
    if (fixture_->record.at("architecture") == "gpt2" || fixture_->record.at("architecture") == "starcoder")
      positions = 128;
    const std::uint64_t before = model->scratch_bytes();
    const std::uint64_t expected = model->expected_scratch_bytes(positions);
    EXPECT_EQ(model->scratch_bytes(), before);  // asking takes nothing
    const auto sequence = model->new_sequence({positions, KvType::kF16});
    const auto tokens = repeated(*fixture_, positions);
    const auto feed = [&](std::size_t first, std::size_t n) {
      const BatchItem item{sequence.get(), std::span(tokens).subspan(first, n), LogitsFor::kLast};
      model->forward({&item, 1});
    };
    feed(0, positions - 2);
    feed(positions - 2, 1);
    feed(positions - 1, 1);
    EXPECT_LE(model->scratch_bytes(), expected) << threads;
    EXPECT_LE(static_cast<double>(expected), 1.25 * static_cast<double>(model->scratch_bytes())) << threads;
    EXPECT_LE(model->scratch_bytes(), model->expected_scratch_bytes(positions));
  }
}

/// Behind the mixer of the last layer only wanted rows are computed: that must not show in any logit.
TEST_P(Scratch, UnwantedRowsDoNotShow) {
  engine::ThreadPool pool(2);
  const auto model = models::open(fixture_->reader(), pool);
  const std::span<const TokenId> tokens = fixture_->tokens;
  const engine::SequenceOptions options{fixture_->n_ctx, KvType::kF16};
  const auto all = run_fresh(*model, options, tokens, tokens.size());
  const std::size_t vocab = model->info().vocab_size;
  const auto row = [&](std::size_t position) { return copy(std::span(all).subspan(position * vocab, vocab)); };
  const std::size_t half = tokens.size() / 2;
  const auto a = model->new_sequence(options), b = model->new_sequence(options), c = model->new_sequence(options);
  const std::vector<BatchItem> items = {{a.get(), tokens.first(half), LogitsFor::kLast},
                                        {b.get(), tokens.first(half), LogitsFor::kNone},
                                        {c.get(), tokens.first(2), LogitsFor::kAll}};
  auto logits = copy(model->forward(items));
  ASSERT_EQ(logits.size(), 3 * vocab);
  EXPECT_EQ(copy(std::span(logits).first(vocab)), row(half - 1));
  EXPECT_EQ(copy(std::span(logits).subspan(vocab, vocab)), row(0));
  EXPECT_EQ(copy(std::span(logits).subspan(2 * vocab, vocab)), row(1));
  // What the unwanted rows left in the caches is whole.
  for (const auto& sequence : {a.get(), b.get()}) {
    const BatchItem rest{sequence, tokens.subspan(half), LogitsFor::kLast};
    EXPECT_EQ(copy(model->forward({&rest, 1})), row(tokens.size() - 1));
  }
  const BatchItem nothing{c.get(), tokens.subspan(2, 5), LogitsFor::kNone};
  EXPECT_TRUE(model->forward({&nothing, 1}).empty());
  EXPECT_EQ(c->length(), 7U);
}

INSTANTIATE_TEST_SUITE_P(All, Scratch, testing::ValuesIn(fixture_names()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Scratch);

std::unique_ptr<FixtureModel> plain_fixture() { return FixtureModel::load("llama-q-q4_k"); }

TEST(LastLayer, ComputesTheWantedRowsAlone) {
  HK_FIXTURE(present, "fixtures/models/llama-q-q4_k.gguf.zst");
  const auto fixture = plain_fixture();
  engine::ThreadPool pool(1);
  const auto model = models::open(fixture->reader(), pool);
  const auto macs = [&](LogitsFor logits) {
    const auto sequence = model->new_sequence({fixture->n_ctx, KvType::kF16});
    engine::Profile profile;
    const BatchItem item{sequence.get(), fixture->tokens, logits};
    model->forward({&item, 1});
    std::uint64_t sum = 0;
    for (const auto& stage : profile.stages())
      if (stage.name == "down") sum += stage.work.integer_macs + stage.work.float_macs;
    return sum;
  };
  const std::size_t layers = model->info().layers, n = fixture->tokens.size();
  const std::uint64_t all = macs(LogitsFor::kAll);
  const std::uint64_t one = all / layers / n;  // a row of a layer
  EXPECT_EQ(macs(LogitsFor::kLast), all - (n - 1) * one);
  EXPECT_EQ(macs(LogitsFor::kNone), all - n * one);
}

TEST(Prefill, IsAskedOftenWhetherItIsStillWanted) {
  HK_FIXTURE(present, "fixtures/models/llama-q-q4_k.gguf.zst");
  const auto fixture = plain_fixture();
  for (const int threads : {1, 2}) {
    engine::ThreadPool pool(threads);
    const auto model = models::open(fixture->reader(), pool);
    const auto tokens = repeated(*fixture, 200);
    const auto sequence = model->new_sequence({256, KvType::kF16});
    const BatchItem item{sequence.get(), tokens, LogitsFor::kLast};
    std::size_t looks = 0, told = 0, last_done = 0;
    engine::ForwardControl control;
    control.cancelled = [&] { return ++looks, false; };
    control.progress = [&](std::size_t done, std::size_t total) {
      EXPECT_GE(done, last_done);
      EXPECT_EQ(total, tokens.size());
      last_done = done;
      ++told;
    };
    const auto logits = copy(model->forward({&item, 1}, control));
    EXPECT_GT(looks, 10 * model->info().layers);
    EXPECT_EQ(told, model->info().layers);  // after each layer, the last at the end
    EXPECT_EQ(last_done, tokens.size());
    // Stopped at any look, the sequence is as it was.
    control.progress = {};
    std::size_t all_looks = 0;
    for (std::size_t stop = ~std::size_t{0}; stop != 0; stop = stop > all_looks ? all_looks : stop * 4 / 5) {
      const auto other = model->new_sequence({256, KvType::kF16});
      const BatchItem first{other.get(), std::span(tokens).first(50), LogitsFor::kLast};
      model->forward({&first, 1});
      const BatchItem rest{other.get(), std::span(tokens).subspan(50), LogitsFor::kLast};
      looks = 0;
      control.cancelled = [&] { return ++looks >= stop; };
      const auto stopped = model->forward({&rest, 1}, control);
      if (all_looks == 0) {
        all_looks = looks;
        EXPECT_EQ(copy(stopped), logits);
        continue;
      }
      if (threads == 1) EXPECT_TRUE(stopped.empty()) << stop;
      if (!stopped.empty()) continue;  // two threads share chunks, so there may be fewer looks than before
      EXPECT_EQ(other->length(), 50U) << stop;
      EXPECT_EQ(copy(model->forward({&rest, 1})), logits) << stop;
    }
  }
}

/// Page faults that a run of tokens takes.
long faults_of(const std::function<void()>& work) {
  struct rusage before {
  }, after{};
  ::getrusage(RUSAGE_SELF, &before);
  work();
  ::getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt;
}

TEST(PageFaults, NoneATokenOnceWarm) {
  HK_FIXTURE(present, "fixtures/models/llama-q-q4_k.gguf.zst");
  for (const char* name : {"llama-q-q4_k", "qwen3moe-q-q4_k", "qwen35-base"}) {
    const auto fixture = FixtureModel::load(name);
    ASSERT_NE(fixture, nullptr);
    engine::ThreadPool pool(2);
    const auto model = models::open(fixture->reader(), pool);
    const auto sequence = model->new_sequence({512, KvType::kF16});
    const auto tokens = repeated(*fixture, 240);
    const auto feed = [&](std::size_t first, std::size_t n) {
      const BatchItem item{sequence.get(), std::span(tokens).subspan(first, n), LogitsFor::kLast};
      model->forward({&item, 1});
    };
    feed(0, tokens.size());  // touches the first page of the cache, too
    sequence->truncate(100);
    const std::size_t from = sequence->length();
    const auto decode = [&] {
      for (std::size_t i = from; i < tokens.size(); ++i) feed(i, 1);
    };
    decode();
    sequence->truncate(from);
    ASSERT_EQ(sequence->length(), from) << name;
    // Going back to the beginning gives back the cache, which is touched anew: once, not with every token.
    const std::size_t anew = from == 0 ? model->state_bytes({512, KvType::kF16}, tokens.size()) / 4096 : 0;
    ASSERT_LT(anew, tokens.size() / 4) << name;
    // A few for what the test itself does and for workers' stacks; not one a token.
    EXPECT_LE(faults_of(decode), 8 + static_cast<long>(anew)) << name;
  }
}

}  // namespace
}  // namespace hk::test
