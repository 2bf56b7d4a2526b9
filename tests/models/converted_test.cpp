// Models of every mechanism computed from the .hk made of them: the same bits as from GGUF.
#include <gtest/gtest.h>

#include "engine/container/convert.h"
#include "tests/models/fixture_model.h"

namespace hk::test {
namespace {

class Converted : public testing::TestWithParam<const char*> {};

TEST_P(Converted, GivesTheSameBits) {
  HK_FIXTURE(present, std::string("fixtures/models/") + GetParam() + ".gguf.zst");
  const auto fixture = FixtureModel::load(GetParam());
  ASSERT_NE(fixture, nullptr);
  const std::string hk = (fixture->folder.path() / "model.hk").string();
  engine::convert_model(*fixture->reader(), hk, {});
  engine::ThreadPool pool(2);
  const auto from_gguf = models::open(fixture->reader(), pool);
  const auto from_hk = models::open(engine::open_model(hk), pool);
  const engine::SequenceOptions options{fixture->n_ctx, kernels::KvType::kF16};
  const std::size_t n = fixture->tokens.size();
  EXPECT_EQ(run_fresh(*from_hk, options, fixture->tokens, n), run_fresh(*from_gguf, options, fixture->tokens, n));
  EXPECT_EQ(from_hk->info().weight_bytes, from_gguf->info().weight_bytes);
}

INSTANTIATE_TEST_SUITE_P(Models, Converted,
                         testing::Values("llama-moe", "gpt-oss-mxfp4-bf16", "qwen3moe-q-q4_k", "deepseek2-v3",
                                         "deepseek2-legacy", "step35-base", "lfm2moe-base", "qwen35moe-base",
                                         "mamba-falcon", "granitehybrid-moe", "rwkv6-base", "rwkv7-base",
                                         "gemma3n-base", "gemma4-dense", "gemma4-moe"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hk::test
