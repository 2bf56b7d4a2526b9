// Every fixture model: known logits, the same bits however the tokens are cut and from the .hk made of it, and greedy
// continuations.
#include <gtest/gtest.h>

#include "engine/container/convert.h"
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

/// The rest of a sequence behind a prefix, between a longer prompt, a single token and an empty item: all logits of the
/// sequence, and behind them those of the single token.
std::vector<float> run_in_company(engine::Model& model, const SequenceOptions& options,
                                  std::span<const TokenId> tokens) {
  const auto first = model.new_sequence(options), prefixed = model.new_sequence(options),
             single = model.new_sequence(options), idle = model.new_sequence(options);
  std::vector<float> logits = run(model, *prefixed, tokens.first(7), 7);
  const BatchItem batch[] = {{first.get(), tokens.first(31), LogitsFor::kNone},
                             {idle.get(), {}, LogitsFor::kAll},
                             {prefixed.get(), tokens.subspan(7), LogitsFor::kAll},
                             {single.get(), tokens.first(1), LogitsFor::kLast}};
  const auto rows = model.forward(batch);
  logits.insert(logits.end(), rows.begin(), rows.end());
  return logits;
}

TEST_P(Fixtures, CutsCompanyAndThreadsDoNotShow) {
  engine::ThreadPool one(1), two(2), five(5);
  const auto model = models::open(fixture_->reader(), one);
  const std::span<const TokenId> tokens = fixture_->tokens;
  const auto whole = run_fresh(*model, options(KvType::kF16), tokens, tokens.size());
  EXPECT_EQ(run_fresh(*model, options(KvType::kF16), tokens, 1), whole);
  EXPECT_EQ(run_fresh(*model, options(KvType::kF16), tokens, 17), whole);
  std::vector<float> with_single = whole;
  with_single.insert(with_single.end(), whole.begin(),
                     whole.begin() + static_cast<std::ptrdiff_t>(model->info().vocab_size));
  for (engine::ThreadPool* pool : {&two, &five}) {
    const auto threaded = models::open(fixture_->reader(), *pool);
    EXPECT_EQ(run_fresh(*threaded, options(KvType::kF16), tokens, tokens.size()), whole) << pool->threads();
    EXPECT_EQ(run_fresh(*threaded, options(KvType::kF16), tokens, 1), whole) << pool->threads();
    EXPECT_EQ(run_in_company(*threaded, options(KvType::kF16), tokens), with_single) << pool->threads();
  }
}

/// The .hk made of the file computes the same bits, at once, token by token and in company.
TEST_P(Fixtures, ConvertedIsTheSameModel) {
  const std::string hk = (fixture_->folder.path() / "model.hk").string();
  engine::convert_model(*fixture_->reader(), hk, {});
  engine::ThreadPool pool(1);
  const auto from_gguf = models::open(fixture_->reader(), pool);
  const auto from_hk = models::open(engine::open_model(hk), pool);
  const std::span<const TokenId> tokens = fixture_->tokens;
  const auto whole = run_fresh(*from_gguf, options(), tokens, tokens.size());
  EXPECT_EQ(run_fresh(*from_hk, options(), tokens, tokens.size()), whole);
  EXPECT_EQ(run_fresh(*from_hk, options(), tokens, 1), whole);
  EXPECT_EQ(run_in_company(*from_hk, options(), tokens), run_in_company(*from_gguf, options(), tokens));
  EXPECT_EQ(from_hk->info().parameters, from_gguf->info().parameters);
  EXPECT_EQ(from_hk->info().remarks, from_gguf->info().remarks);
}

/// Everything in a file is used, but for what is known to be without effect in the runtimes the files are made for.
TEST_P(Fixtures, NothingIsLeftOver) {
  constexpr const char* kKnown[] = {"guess tokens ahead",
                                    "attention.sliding_window'",
                                    "'grok.router_logit_softcapping'",
                                    "'bailingmoe.leading_dense_block_count'",
                                    "'gemma3n.final_logit_softcapping'",
                                    "'granitehybrid.rope.freq_base'",
                                    "'nemotron_h.attention.layer_norm_epsilon'",
                                    "'nemotron_h_moe.attention.layer_norm_epsilon'"};
  engine::ThreadPool pool(1);
  const auto model = models::open(fixture_->reader(), pool);
  for (const std::string& remark : model->info().remarks) {
    const bool known = std::ranges::any_of(kKnown, [&](const char* part) { return remark.find(part) != remark.npos; });
    EXPECT_TRUE(known) << remark;
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

INSTANTIATE_TEST_SUITE_P(Models, Fixtures, testing::ValuesIn(fixture_names()),
                         [](const auto& instance) { return test_name(instance.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Fixtures);

}  // namespace
}  // namespace hk::test
