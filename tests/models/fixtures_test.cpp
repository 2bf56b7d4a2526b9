// Every fixture model of a known family: known logits, the same bits however the tokens are cut, and greedy
// continuations.
#include <gtest/gtest.h>

#include "kernels/kernels.h"
#include "tests/models/fixture_model.h"
#include "tests/support/reference_kernels.h"

namespace hk::test {
namespace {

using engine::BatchItem;
using engine::LogitsFor;
using engine::SequenceOptions;
using engine::TokenId;
using kernels::KvType;

/// Fixtures of known families that need what the engine does not have: storage types without a number in .hk.
const std::vector<std::string> kNotRun = {"llama-q-q1_0", "llama-q-q2_0", "qwen3-q-q1_0", "qwen3-q-q2_0"};

class Fixtures : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    HK_FIXTURE(index, "fixtures/models/index.json");
    fixture_ = FixtureModel::load(GetParam());
    ASSERT_NE(fixture_, nullptr) << "the index lists " << GetParam() << ", but its files are absent";
  }
  SequenceOptions options(KvType kv = KvType::kF32) const { return {fixture_->n_ctx, kv}; }

  std::unique_ptr<FixtureModel> fixture_;
};

TEST_P(Fixtures, LogitsAreTheExactOnes) {
  engine::ThreadPool pool(2);
  std::vector<const kernels::KernelTable*> levels{&reference_kernels()};
  for (const kernels::KernelTable* level : kernels::usable_levels()) levels.push_back(level);
  for (const kernels::KernelTable* level : levels) {
    const auto model = models::open(fixture_->reader(), pool, *level);
    const auto logits = run_fresh(*model, options(), fixture_->tokens, fixture_->tokens.size());
    ASSERT_EQ(logits.size(), fixture_->exact.size());
    const double largest = max_difference(logits, fixture_->exact);
    const double rms = rms_difference(logits, fixture_->exact);
    if (fixture_->quantized()) {
      // Rounding may choose other experts, which throws a row far off; the plain kernels of the tests meet that once.
      const bool plain_mixture = level == levels[0] && fixture_->record.at("stats").contains("router_gap_min");
      EXPECT_LE(rms, (plain_mixture ? 3 : 2) * fixture_->reference_rms()) << level->level;
    } else {
      EXPECT_LE(largest, fixture_->tolerance()) << level->level;
    }
    if (level == levels[1]) {
      RecordProperty("rms", std::to_string(rms));
      if (std::getenv("HK_TEST_VERBOSE") != nullptr)
        std::cerr << GetParam() << " " << level->level << " max " << largest << " rms " << rms << " reference rms "
                  << fixture_->reference_rms() << "\n";
    }
  }
}

TEST_P(Fixtures, HalfPrecisionCacheIsClose) {
  engine::ThreadPool pool(1);
  const auto model = models::open(fixture_->reader(), pool);
  const auto wide = run_fresh(*model, options(KvType::kF32), fixture_->tokens, fixture_->tokens.size());
  const auto half = run_fresh(*model, options(KvType::kF16), fixture_->tokens, fixture_->tokens.size());
  // Half precision keeps 11 bits of keys and values. Where activations are rounded to 8 bits, any difference at all
  // makes some of them fall the other way, so there the effect is of the size of that rounding.
  const double rounding = fixture_->quantized() ? 1.5 * fixture_->reference_rms() : 0;
  EXPECT_LE(rms_difference(half, wide), std::max(0.01, rounding));
}

TEST_P(Fixtures, CutsCompanyAndThreadsDoNotShow) {
  engine::ThreadPool one(1), two(2), five(5);
  const auto model = models::open(fixture_->reader(), one);
  const std::span<const TokenId> tokens = fixture_->tokens;
  const auto whole = run_fresh(*model, options(KvType::kF16), tokens, tokens.size());
  EXPECT_EQ(run_fresh(*model, options(KvType::kF16), tokens, 1), whole);
  EXPECT_EQ(run_fresh(*model, options(KvType::kF16), tokens, 17), whole);

  for (engine::ThreadPool* pool : {&two, &five}) {
    const auto threaded = models::open(fixture_->reader(), *pool);
    EXPECT_EQ(run_fresh(*threaded, options(KvType::kF16), tokens, tokens.size()), whole) << pool->threads();
    EXPECT_EQ(run_fresh(*threaded, options(KvType::kF16), tokens, 1), whole) << pool->threads();

    // In company: the rest of the sequence behind a prefix, between a longer prompt, a single token and an empty item.
    const auto first = threaded->new_sequence(options(KvType::kF16)),
               prefixed = threaded->new_sequence(options(KvType::kF16)),
               single = threaded->new_sequence(options(KvType::kF16)),
               idle = threaded->new_sequence(options(KvType::kF16));
    const auto head = run(*threaded, *prefixed, tokens.first(7), 7);
    const BatchItem batch[] = {{first.get(), tokens.first(31), LogitsFor::kNone},
                               {idle.get(), {}, LogitsFor::kAll},
                               {prefixed.get(), tokens.subspan(7), LogitsFor::kAll},
                               {single.get(), tokens.first(1), LogitsFor::kLast}};
    const auto rows = copy(threaded->forward(batch));
    const std::size_t vocab = threaded->info().vocab_size;
    ASSERT_EQ(rows.size(), (tokens.size() - 7 + 1) * vocab);
    EXPECT_TRUE(std::equal(head.begin(), head.end(), whole.begin()));
    EXPECT_TRUE(std::equal(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(vocab),
                           whole.begin() + static_cast<std::ptrdiff_t>(7 * vocab)));
    EXPECT_TRUE(std::equal(rows.end() - static_cast<std::ptrdiff_t>(vocab), rows.end(), whole.begin()));
  }
}

TEST_P(Fixtures, GreedyContinuation) {
  HK_FIXTURE(greedy_path, "fixtures/models/greedy.json");
  const auto greedy = read_json(greedy_path);
  if (!greedy.contains(GetParam())) GTEST_SKIP() << "no continuation for " << GetParam();
  const auto expected = greedy.at(GetParam()).get<std::vector<TokenId>>();
  engine::ThreadPool pool(2);
  const auto model = models::open(fixture_->reader(), pool);
  const auto sequence = model->new_sequence(options());
  // Below this distance to the best token another choice is a tie, after which the texts part.
  const double tie = fixture_->quantized() ? 8 * fixture_->reference_rms() : 4 * fixture_->tolerance();
  std::vector<TokenId> next = fixture_->tokens;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const BatchItem item{sequence.get(), next, LogitsFor::kLast};
    const auto row = model->forward({&item, 1});
    const TokenId best = best_token(row);
    if (best != expected[i]) {
      EXPECT_LE(row[static_cast<std::size_t>(best)] - row[static_cast<std::size_t>(expected[i])], tie) << "step " << i;
      return;
    }
    next = {best};
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Fixtures, testing::ValuesIn(fixture_names(models::known_architectures(), kNotRun)),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           std::erase_if(name, [](char c) { return c == '.'; });
                           return name;
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Fixtures);

}  // namespace
}  // namespace hk::test
