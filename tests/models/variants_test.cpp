// Variants that no fixture has, each against a fixture that means the same: product scales, shared embeddings,
// unpermuted rows, the spellings of rope scaling.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numbers>

#include "models/rope.h"
#include "tests/models/fixture_model.h"
#include "tests/support/edited_reader.h"

namespace hk::test {
namespace {

class Variants : public testing::Test {
 protected:
  void load(const char* name) {
    fixture_ = FixtureModel::load(name);
    ASSERT_NE(fixture_, nullptr);
  }
  std::vector<float> logits(const EditedReader& edited) {
    const auto model = models::open(edited.finish(), pool_);
    return run_fresh(*model, {fixture_->n_ctx, kernels::KvType::kF32}, fixture_->tokens, fixture_->tokens.size());
  }
  EditedReader edit() const { return EditedReader(fixture_->reader()); }
  static std::vector<float> values(const engine::TensorView& view) {
    std::vector<float> out(view.data.size() / sizeof(float));
    std::memcpy(out.data(), view.data.data(), view.data.size());
    return out;
  }

  engine::ThreadPool pool_{1};
  std::unique_ptr<FixtureModel> fixture_;
};

TEST_F(Variants, ScaleTensorsMultiplyProducts) {
  HK_FIXTURE(present, "fixtures/models/llama-bias.gguf.zst");
  load("llama-bias");
  auto plain = edit();
  const auto usual = logits(plain);
  auto scaled = edit();
  scaled.set_tensor("output.scale", {1}, {0.5F});
  auto expected = usual;
  for (float& x : expected) x *= 0.5F;
  EXPECT_EQ(logits(scaled), expected);

  // The scale belongs to the product, the bias is added after it: half the matrix with scale 2 is the same model.
  auto halved = edit();
  const engine::TensorView up = *halved.tensor("blk.1.ffn_up.weight");
  auto weights = values(up);
  for (float& x : weights) x *= 0.5F;
  halved.set_tensor("blk.1.ffn_up.weight", {up.shape[0], up.shape[1]}, weights);
  EXPECT_GT(max_difference(logits(halved), usual), 0.1);
  halved.set_tensor("blk.1.ffn_up.scale", {1}, {2.0F});
  EXPECT_EQ(logits(halved), usual);
}

TEST_F(Variants, SharedReferencesAreTheTensorTheyPointTo) {
  HK_FIXTURE(present, "fixtures/models/llama-q-q4_k.gguf.zst");
  load("llama-q-q4_k");
  auto tied = edit();
  const auto usual = logits(tied);
  auto shared = edit();
  const engine::TensorView embedding = *shared.tensor("token_embd.weight");
  shared.set_tensor("output.weight", {embedding.shape[0], embedding.shape[1]}, {});
  engine::TensorView& output = *shared.tensor("output.weight");
  output.type = engine::StorageType::kSharedRef;
  output.data = embedding.data;
  EXPECT_EQ(logits(shared), usual);
}

/// Rows of each head from adjacent pairs to halves.
std::vector<float> unpermuted(const std::vector<float>& rows, std::size_t heads, std::size_t head_size,
                              std::size_t cols) {
  std::vector<float> out(rows.size());
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t d = 0; d < head_size; ++d) {
      const std::size_t to = d / 2 + (d % 2) * (head_size / 2);
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>((h * head_size + d) * cols), cols,
                  out.begin() + static_cast<std::ptrdiff_t>((h * head_size + to) * cols));
    }
  }
  return out;
}

TEST_F(Variants, UnpermutedRowsRotateInHalves) {
  HK_FIXTURE(present, "fixtures/models/llama-bias.gguf.zst");
  load("llama-bias");
  auto plain = edit();
  const auto usual = logits(plain);
  auto halves = edit();
  for (int layer = 0; layer < 4; ++layer) {
    for (const auto& [part, heads] : {std::pair{"attn_q", 4}, std::pair{"attn_k", 2}}) {
      const std::string name = "blk." + std::to_string(layer) + "." + part;
      const engine::TensorView weight = *halves.tensor(name + ".weight"), bias = *halves.tensor(name + ".bias");
      const auto n = static_cast<std::size_t>(heads);
      halves.set_tensor(name + ".weight", {weight.shape[0], 64}, unpermuted(values(weight), n, 16, 64));
      halves.set_tensor(name + ".bias", {bias.shape[0]}, unpermuted(values(bias), n, 16, 1));
    }
  }
  EXPECT_GT(max_difference(logits(halves), usual), 0.1);
  halves.set_text("hk.rope_style", "neox");
  EXPECT_LE(max_difference(logits(halves), usual), 1e-4);
  halves.set_text("hk.rope_style", "norm");
  EXPECT_GT(max_difference(logits(halves), usual), 0.1);
}

TEST_F(Variants, Llama3ScalingEqualsItsFactors) {
  HK_FIXTURE(present, "fixtures/models/llama-plain.gguf.zst");
  load("llama-plain");
  // The published rule, in its own terms: wave lengths against the trained context.
  const double factor = 8, low = 1, high = 4, context = 64;
  std::vector<float> factors;
  for (int i = 0; i < 8; ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(10000.0, 2.0 * i / 16);
    double divisor = 1;
    if (wave > context / low) {
      divisor = factor;
    } else if (wave > context / high) {
      const double smooth = (context / wave - low) / (high - low);
      divisor = 1 / ((1 - smooth) / factor + smooth);
    }
    factors.push_back(static_cast<float>(divisor));
  }
  auto by_tensor = edit();
  by_tensor.set_tensor("rope_freqs.weight", {8}, factors);
  auto by_keys = edit();
  by_keys.set_text("llama.rope.scaling.type", "llama3").set_number("llama.rope.scaling.factor", factor);
  by_keys.set_integer("llama.rope.scaling.original_context_length", 64);
  by_keys.set_number("hk.rope.low_freq_factor", low).set_number("hk.rope.high_freq_factor", high);
  auto plain = edit();
  EXPECT_LE(max_difference(logits(by_keys), logits(by_tensor)), 1e-4);
  EXPECT_GT(max_difference(logits(by_keys), logits(plain)), 0.01);
}

TEST_F(Variants, YarnBetasOfBothSpellings) {
  HK_FIXTURE(present, "fixtures/models/llama-yarn.gguf.zst");
  load("llama-yarn");
  auto usual = edit();
  auto gguf = edit();
  gguf.set_number("llama.rope.scaling.yarn_beta_fast", 4).set_number("llama.rope.scaling.yarn_beta_slow", 0.5);
  auto own = edit();
  own.set_number("hk.rope.beta_fast", 4).set_number("hk.rope.beta_slow", 0.5);
  EXPECT_EQ(logits(own), logits(gguf));
  EXPECT_GT(max_difference(logits(own), logits(usual)), 1e-3);
  auto off = edit();  // without extrapolation YaRN is linear scaling
  off.set_number("llama.rope.scaling.yarn_ext_factor", 0);
  auto linear = edit();
  linear.set_text("llama.rope.scaling.type", "linear");
  EXPECT_EQ(logits(off), logits(linear));
}

TEST(RopeTables, YarnKeepsFastPairsAndStretchesSlowOnes) {
  models::RopeSettings s;
  s.n_rot = 64;
  s.scaling = models::RopeScaling::kYarn;
  s.factor = 8;
  s.original_context = 2048;
  const models::RopeTable table = models::make_rope_table(s);
  ASSERT_EQ(table.frequencies.size(), 32u);
  EXPECT_DOUBLE_EQ(table.frequencies[0], 1.0);
  EXPECT_NEAR(table.frequencies[31], std::pow(10000.0, -62.0 / 64) / 8, 1e-12);
  for (std::size_t i = 1; i < 32; ++i) {
    const double original = std::pow(10000.0, -2.0 * static_cast<double>(i) / 64);
    EXPECT_LE(table.frequencies[i], original * (1 + 1e-12));
    EXPECT_GE(table.frequencies[i], original / 8 * (1 - 1e-12));
    EXPECT_LT(table.frequencies[i], table.frequencies[i - 1]);
  }
  EXPECT_NEAR(table.magnitude, 1 + 0.1 * std::log(8.0), 1e-6);
  s.yarn_log_multiplier = 1;
  EXPECT_NEAR(models::make_rope_table(s).magnitude, 1, 1e-6);
}

}  // namespace
}  // namespace hk::test
