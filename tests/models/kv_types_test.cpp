// Caches of every type in models: small losses, the same bits however tokens are cut, sizes as foretold; and what a
// pass reads of a context.
#include <gtest/gtest.h>

#include <atomic>

#include "kernels/kernels.h"
#include "models/kv_cache.h"
#include "tests/models/fixture_model.h"

namespace hk::test {
namespace {

using engine::BatchItem;
using engine::LogitsFor;
using engine::TokenId;
using kernels::KvType;

std::vector<TokenId> made_up_tokens(std::size_t n, std::size_t vocab) {
  std::vector<TokenId> tokens(n);
  std::uint32_t state = 12345;
  for (TokenId& token : tokens) {
    state = state * 1664525U + 1013904223U;
    token = static_cast<TokenId>((state >> 8) % vocab);
  }
  return tokens;
}

double rms(std::span<const float> x) {
  const std::vector<float> zeros(x.size(), 0.0F);
  return rms_difference(x, zeros);
}

/// Plain attention, windows and soft caps, position biases, sinks, latents (as one head and as many), layers with a
/// state beside layers with a cache, values of other layers.
class KvTypes : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    HK_FIXTURE(present, std::string("fixtures/models/") + GetParam() + ".gguf.zst");
    fixture_ = FixtureModel::load(GetParam());
    ASSERT_NE(fixture_, nullptr);
    model_ = models::open(fixture_->reader(), pool_);
    tokens_ = made_up_tokens(kTokens, model_->info().vocab_size);
  }
  static constexpr std::size_t kTokens = 300;  // two pages
  engine::ThreadPool pool_{1};
  std::unique_ptr<FixtureModel> fixture_;
  std::unique_ptr<engine::Model> model_;
  std::vector<TokenId> tokens_;
};

TEST_P(KvTypes, LoseLittle) {
  const auto exact = run_fresh(*model_, {kTokens, KvType::kF32}, tokens_, kTokens);
  // Random weights make attention that hangs on every digit; eight bits of bf16 are off by 0.1 %, codes by 0.5 % of
  // what is usual. Where a router chooses, some tokens go to other experts, which changes all that follows.
  const double mixture = fixture_->record.at("stats").contains("router_gap_min") ? 8 : 1;
  const std::pair<KvType, double> limits[] = {{KvType::kF16, 0.005}, {KvType::kBf16, 0.02}, {KvType::kQ8_0, 0.08}};
  for (const auto& [type, limit] : limits) {
    const auto logits = run_fresh(*model_, {kTokens, type}, tokens_, kTokens);
    const double loss = rms_difference(logits, exact) / rms(exact);
    EXPECT_LE(loss, mixture * limit) << kernels::kv_type_name(type);
    RecordProperty(std::string(kernels::kv_type_name(type)), std::to_string(loss));
  }
}

TEST_P(KvTypes, GiveTheSameBitsHoweverTokensAreCut) {
  for (const KvType type : {KvType::kBf16, KvType::kQ8_0}) {
    const engine::SequenceOptions options{kTokens, type};
    const auto whole = run_fresh(*model_, options, tokens_, kTokens);
    for (const std::size_t batch : {std::size_t{1}, std::size_t{37}})
      EXPECT_EQ(run_fresh(*model_, options, tokens_, batch), whole) << kernels::kv_type_name(type) << ' ' << batch;
    engine::ThreadPool pool(3);
    const auto threaded = models::open(fixture_->reader(), pool);
    for (const std::size_t batch : {std::size_t{1}, kTokens})
      EXPECT_EQ(run_fresh(*threaded, options, tokens_, batch), whole) << kernels::kv_type_name(type) << ' ' << batch;
  }
}

TEST_P(KvTypes, TakeWhatIsForetoldAndForgetWhatIsTakenBack) {
  for (const KvType type : kernels::kKvTypes) {
    const engine::SequenceOptions options{kTokens, type};
    const auto whole = run_fresh(*model_, options, tokens_, kTokens);
    const auto s = model_->new_sequence(options);
    run(*model_, *s, tokens_, kTokens);
    EXPECT_LE(s->state_bytes(), model_->state_bytes(options, kTokens)) << kernels::kv_type_name(type);
    const auto branch = s->fork();
    const std::size_t kept = s->truncate(270);
    const auto other = std::vector<TokenId>(20, tokens_[0]);
    run(*model_, *s, other, 20);  // the branch shares the page that this writes to
    const std::size_t again = branch->truncate(kept);
    EXPECT_EQ(again, kept);
    const auto rest = run(*model_, *branch, std::span(tokens_).subspan(kept), 64);
    const auto vocab = static_cast<std::ptrdiff_t>(model_->info().vocab_size);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole.begin() + static_cast<std::ptrdiff_t>(kept) * vocab))
        << kernels::kv_type_name(type);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, KvTypes,
                         testing::Values("llama-plain", "gemma2-base", "gemma3-base", "bloom-base", "gpt-oss-f32",
                                         "deepseek2-v3", "deepseek2-legacy", "lfm2-base", "jamba-base", "gemma3n-base"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// What kernel calls were asked to look at.
std::atomic<std::uint64_t> pages{0}, positions{0};

void count_page(const kernels::AttendPageArgs& args) {
  ++pages;
  for (std::size_t i = 0; i < args.n; ++i) positions += args.last[i] > args.first[i] ? args.last[i] - args.first[i] : 0;
  kernels::kernels().attend_page(args);
}

/// A token's attention costs what it sees: all positions of full layers, the window of others, whatever the context
/// could hold.
TEST(KvReading, IsWhatTheTokenSees) {
  HK_FIXTURE(present, "fixtures/models/gemma2-base.gguf.zst");
  const auto fixture = FixtureModel::load("gemma2-base");
  ASSERT_NE(fixture, nullptr);
  kernels::KernelTable counting = kernels::kernels();
  counting.attend_page = count_page;
  for (const int threads : {1, 2}) {
    engine::ThreadPool pool(threads);
    const auto model = models::open(fixture->reader(), pool, counting);
    const auto tokens = made_up_tokens(2601, model->info().vocab_size);
    for (const std::size_t length : {std::size_t{100}, std::size_t{1000}, std::size_t{2600}}) {
      const auto s = model->new_sequence({3000, KvType::kQ8_0});
      const BatchItem prompt{s.get(), std::span(tokens).first(length), LogitsFor::kNone};
      model->forward({&prompt, 1});
      pages = positions = 0;
      const BatchItem one{s.get(), std::span(tokens).subspan(length, 1), LogitsFor::kLast};
      model->forward({&one, 1});
      // Five layers of two kv heads and four query heads; three of the layers see 20 positions.
      const std::uint64_t seen = length + 1, full_pages = (seen + 255) / 256;
      EXPECT_EQ(positions, 4 * (2 * seen + 3 * 20)) << length;
      EXPECT_GE(pages, 2 * (2 * full_pages + 3)) << length;
      EXPECT_LE(pages, 2 * (2 * full_pages + 3 * 2)) << length;
    }
  }
}

}  // namespace
}  // namespace hk::test
