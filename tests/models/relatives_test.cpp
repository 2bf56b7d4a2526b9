// Families that no fixture has: each against a checked family that means the same under a change, and what is new in
// them against plain loops in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/models/fixture_model.h"
#include "tests/support/edited_reader.h"

namespace hk::test {
namespace {

using engine::TokenId;
using Vector = std::vector<double>;

class Relatives : public testing::Test {
 protected:
  void load(const char* name) {
    fixture_ = FixtureModel::load(name);
    ASSERT_NE(fixture_, nullptr);
  }
  EditedReader edit() const { return EditedReader(fixture_->reader()); }
  std::vector<float> logits(const EditedReader& edited, std::span<const TokenId> tokens, std::size_t batch = 48) {
    const auto model = models::open(edited.finish(), pool_);
    return run_fresh(*model, {fixture_->n_ctx, kernels::KvType::kF32}, tokens, batch);
  }
  std::vector<float> logits(const EditedReader& edited) { return logits(edited, fixture_->tokens); }

  engine::ThreadPool pool_{1};
  std::unique_ptr<FixtureModel> fixture_;
};

TEST_F(Relatives, MaincoderIsHunyuanThatRotatesNeighbours) {
  HK_FIXTURE(present, "fixtures/models/hunyuan-dense-base.gguf.zst");
  load("hunyuan-dense-base");
  auto hunyuan = edit();
  const auto halves = logits(hunyuan);
  hunyuan.set_text("hk.rope_style", "norm");
  auto maincoder = edit();
  maincoder.rename_architecture("hunyuan-dense", "maincoder");
  EXPECT_EQ(logits(maincoder), logits(hunyuan));
  EXPECT_GT(max_difference(logits(maincoder), halves), 0.01);
}

TEST_F(Relatives, Jais2IsNemotron) {
  HK_FIXTURE(present, "fixtures/models/nemotron-base.gguf.zst");
  load("nemotron-base");
  auto jais = edit();
  EXPECT_EQ(logits(edit().rename_architecture("nemotron", "jais2")), logits(jais));
}

TEST_F(Relatives, MellumIsQwen3MoeWithWindowsThatDoNotScale) {
  HK_FIXTURE(present, "fixtures/models/qwen3moe-base.gguf.zst");
  load("qwen3moe-base");
  const auto plain = logits(edit());
  auto scaled = edit();
  scaled.set_number("qwen3moe.rope.scaling.factor", 4);
  auto mellum = edit();
  mellum.rename_architecture("qwen3moe", "mellum");
  EXPECT_EQ(logits(mellum), plain);
  mellum.set_number("mellum.rope.scaling.factor", 4).set_integer("mellum.attention.sliding_window", 1000);
  mellum.set_json("mellum.attention.sliding_window_pattern", "[0,0,0]");
  EXPECT_EQ(logits(mellum), logits(scaled));
  mellum.set_json("mellum.attention.sliding_window_pattern", "[1,1,1]");
  EXPECT_EQ(logits(mellum), plain);

  // Three layers of 5 positions see the last 13 tokens and no more; rotation is relative, so where they stand is one.
  mellum.set_integer("mellum.attention.sliding_window", 5);
  const std::span<const TokenId> tokens = fixture_->tokens;
  const auto whole = logits(mellum);
  const auto last = [&](std::size_t n) {
    const auto rows = logits(mellum, tokens.last(n));
    return max_difference(std::span(rows).last(rows.size() / n), std::span(whole).last(rows.size() / n));
  };
  EXPECT_LE(last(13), 1e-3);
  EXPECT_GT(last(12), 1e-2);
}

TEST_F(Relatives, KimiLinearAttendsLikeDeepseekWithoutRotation) {
  HK_FIXTURE(present, "fixtures/models/deepseek2-v3.gguf.zst");
  load("deepseek2-v3");
  auto still = edit();
  const std::size_t pairs = fixture_->record.at("metadata").at("deepseek2.rope.dimension_count").get<std::size_t>() / 2;
  still.remove_key("deepseek2.rope.scaling.type").remove_key("deepseek2.rope.scaling.factor");
  still.set_tensor("rope_freqs.weight", {pairs}, std::vector<float>(pairs, 1e30F));
  auto kimi = edit();
  kimi.rename_architecture("deepseek2", "kimi-linear");
  EXPECT_LE(max_difference(logits(kimi), logits(still)), 1e-4);
}

/// A model of one layer taken from a fixture, its tensors as doubles.
class OneLayer : public Relatives {
 protected:
  static constexpr std::size_t kWidth = 64;

  Vector values(EditedReader& model, const std::string& name) {
    const engine::TensorView& view = *model.tensor(name);
    std::vector<float> floats(view.elements());
    std::memcpy(floats.data(), view.data.data(), floats.size() * sizeof(float));
    return {floats.begin(), floats.end()};
  }
  void add(EditedReader& model, const std::string& name, std::vector<std::uint64_t> shape, float scale) {
    std::size_t n = 1;
    for (const std::uint64_t d : shape) n *= d;
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> floats(n);
    for (float& x : floats) x = normal(random_);
    model.set_tensor("blk.0." + name, std::move(shape), floats);
  }
  static Vector times(const Vector& matrix, const Vector& x) {
    Vector y(matrix.size() / x.size());
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += matrix[r * x.size() + c] * x[c];
    }
    return y;
  }
  Vector normed(const Vector& x, const Vector& weight) const {
    double sum = 0;
    for (const double v : x) sum += v * v;
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = x[i] / std::sqrt(sum / static_cast<double>(x.size()) + epsilon_) * weight[i];
    return y;
  }
  Vector embedded(EditedReader& model, TokenId id) {
    const Vector table = values(model, "token_embd.weight");
    const auto first = table.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(id) * kWidth);
    return {first, first + kWidth};
  }
  /// The largest distance of a row of logits to those of the stream x.
  double distance(EditedReader& model, std::span<const float> row, const Vector& x) {
    const Vector expected = times(values(model, "output.weight"), normed(x, values(model, "output_norm.weight")));
    double largest = 0;
    for (std::size_t i = 0; i < row.size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(row[i]) - expected[i]));
    return largest;
  }

  std::mt19937 random_{5};
  double epsilon_ = 1e-5;
};

TEST_F(OneLayer, DeciHasLayersOfOneMatrixAndOfNothing) {
  HK_FIXTURE(present, "fixtures/models/llama-plain.gguf.zst");
  load("llama-plain");
  const auto plain = logits(edit());
  auto deci = edit();
  deci.rename_architecture("llama", "deci");
  EXPECT_EQ(logits(deci), plain);
  deci.set_json("deci.attention.head_count", "[4,4,4,4]").set_json("deci.attention.head_count_kv", "[2,2,2,2]");
  deci.set_integer("deci.attention.key_length", 16).set_integer("deci.attention.value_length", 16);
  EXPECT_EQ(logits(deci), plain);

  epsilon_ = fixture_->record.at("metadata").at("llama.attention.layer_norm_rms_epsilon").get<double>();
  deci.set_integer("deci.block_count", 1).set_json("deci.feed_forward_length", "[0]");
  for (const char* heads : {"[0]", "[4]"}) {
    deci.set_json("deci.attention.head_count", heads).set_json("deci.attention.head_count_kv", "[0]");
    const auto rows = logits(deci);
    const std::size_t vocab = rows.size() / fixture_->tokens.size();
    for (const std::size_t i : {0, 1, 47}) {
      Vector x = embedded(deci, fixture_->tokens[i]);
      if (heads[1] != '0') {
        const Vector mixed =
            times(values(deci, "blk.0.attn_output.weight"), normed(x, values(deci, "blk.0.attn_norm.weight")));
        for (std::size_t c = 0; c < kWidth; ++c) x[c] += mixed[c];
      }
      EXPECT_LE(distance(deci, std::span(rows).subspan(i * vocab, vocab), x), 1e-3) << heads << " " << i;
    }
  }
}

TEST_F(OneLayer, BitnetB158SquaresItsGate) {
  HK_FIXTURE(present, "fixtures/models/llama-plain.gguf.zst");
  load("llama-plain");
  epsilon_ = fixture_->record.at("metadata").at("llama.attention.layer_norm_rms_epsilon").get<double>();
  auto bitnet = edit();
  bitnet.rename_architecture("llama", "bitnet-b1.58").set_integer("bitnet-b1.58.block_count", 1);
  add(bitnet, "attn_sub_norm.weight", {kWidth}, 1);
  add(bitnet, "ffn_sub_norm.weight", {112}, 1);
  const auto rows = logits(bitnet, std::span(fixture_->tokens).first(1));
  const auto part = [&](const char* name) { return values(bitnet, std::string("blk.0.") + name + ".weight"); };
  // A single position attends to itself alone: of each head, the value of its kv head.
  Vector x = embedded(bitnet, fixture_->tokens[0]);
  const Vector value = times(part("attn_v"), normed(x, part("attn_norm")));
  Vector attended(kWidth);
  for (std::size_t c = 0; c < kWidth; ++c) attended[c] = value[c / 32 * 16 + c % 16];
  const Vector mixed = times(part("attn_output"), normed(attended, part("attn_sub_norm")));
  for (std::size_t c = 0; c < kWidth; ++c) x[c] += mixed[c];
  const Vector input = normed(x, part("ffn_norm"));
  Vector inner = times(part("ffn_gate"), input);
  const Vector up = times(part("ffn_up"), input);
  for (std::size_t c = 0; c < inner.size(); ++c) inner[c] = std::pow(std::max(inner[c], 0.0), 2) * up[c];
  const Vector down = times(part("ffn_down"), normed(inner, part("ffn_sub_norm")));
  for (std::size_t c = 0; c < kWidth; ++c) x[c] += down[c];
  EXPECT_LE(distance(bitnet, rows, x), 1e-3);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_F(OneLayer, KimiLinearForgetsByChannel) {
  HK_FIXTURE(present, "fixtures/models/llama-plain.gguf.zst");
  load("llama-plain");
  epsilon_ = fixture_->record.at("metadata").at("llama.attention.layer_norm_rms_epsilon").get<double>();
  constexpr std::size_t kHeads = 4, kHead = 8, kInner = kHeads * kHead, kTaps = 4;
  auto kimi = edit();
  kimi.rename_architecture("llama", "kimi-linear");
  const std::string arch = "kimi-linear.";
  kimi.set_integer(arch + "block_count", 1).set_integer(arch + "leading_dense_block_count", 1);
  kimi.set_json(arch + "attention.head_count_kv", "[0]").set_integer(arch + "kda.head_dim", kHead);
  kimi.set_integer(arch + "ssm.conv_kernel", kTaps);
  const float weight = 1 / std::sqrt(static_cast<float>(kWidth));
  for (const char* part : {"attn_q", "attn_k", "attn_v"})
    add(kimi, std::string(part) + ".weight", {kInner, kWidth}, 2 * weight);
  for (const char* part : {"ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"})
    add(kimi, std::string(part) + ".weight", {kInner, 1, kTaps}, 0.5F);
  for (const char* part : {"ssm_f_", "ssm_g_"}) {
    add(kimi, std::string(part) + "a.weight", {kHead, kWidth}, weight);
    add(kimi, std::string(part) + "b.weight", {kInner, kHead}, 0.4F);
  }
  add(kimi, "ssm_beta.weight", {kHeads, kWidth}, weight);
  add(kimi, "ssm_dt.bias", {kInner}, 0.5F);
  kimi.set_tensor("blk.0.ssm_a", {kHeads, 1}, {-0.1F, -0.5F, -1.0F, -3.0F});
  add(kimi, "ssm_norm.weight", {kHead}, 1.0F);
  add(kimi, "attn_output.weight", {kWidth, kInner}, 0.3F);
  kimi.set_tensor("blk.0.ffn_down.weight", {kWidth, 112}, std::vector<float>(kWidth * 112));  // nothing to be added

  const auto part = [&](const char* name) { return values(kimi, std::string("blk.0.") + name); };
  const auto rows = logits(kimi);
  EXPECT_EQ(logits(kimi, fixture_->tokens, 1), rows);
  EXPECT_EQ(logits(kimi, fixture_->tokens, 7), rows);
  const std::size_t vocab = rows.size() / fixture_->tokens.size();
  const Vector f_a = part("ssm_f_a.weight"), f_b = part("ssm_f_b.weight"), g_a = part("ssm_g_a.weight"),
               g_b = part("ssm_g_b.weight"), dt = part("ssm_dt.bias"), decay = part("ssm_a"),
               beta_weight = part("ssm_beta.weight"), head_norm = part("ssm_norm.weight");
  std::vector<Vector> past[3];  // of q, k and v before the convolution
  std::vector<Vector> memory(kHeads, Vector(kHead * kHead));
  for (std::size_t position = 0; position < fixture_->tokens.size(); ++position) {
    Vector x = embedded(kimi, fixture_->tokens[position]);
    const Vector input = normed(x, part("attn_norm.weight"));
    Vector mixed[3];
    const char* names[3][2] = {{"attn_q.weight", "ssm_conv1d_q.weight"},
                               {"attn_k.weight", "ssm_conv1d_k.weight"},
                               {"attn_v.weight", "ssm_conv1d_v.weight"}};
    for (int p = 0; p < 3; ++p) {
      past[p].push_back(times(part(names[p][0]), input));
      const Vector taps = part(names[p][1]);
      mixed[p].assign(kInner, 0);
      for (std::size_t c = 0; c < kInner; ++c) {
        for (std::size_t t = 0; t < kTaps && t <= position; ++t)
          mixed[p][c] += taps[c * kTaps + kTaps - 1 - t] * past[p][position - t][c];
        mixed[p][c] *= sigmoid(mixed[p][c]);
      }
    }
    const Vector f = times(f_b, times(f_a, input)), g = times(g_b, times(g_a, input)), b = times(beta_weight, input);
    Vector result(kInner);
    for (std::size_t h = 0; h < kHeads; ++h) {
      const auto unit = [&](const Vector& v) {
        Vector out(v.begin() + static_cast<std::ptrdiff_t>(h * kHead),
                   v.begin() + static_cast<std::ptrdiff_t>((h + 1) * kHead));
        double sum = 0;
        for (const double e : out) sum += e * e;
        for (double& e : out) e /= std::max(std::sqrt(sum), epsilon_);
        return out;
      };
      const Vector q = unit(mixed[0]), k = unit(mixed[1]);
      Vector& m = memory[h];
      for (std::size_t d = 0; d < kHead; ++d) {
        const double keep = std::exp(std::log1p(std::exp(f[h * kHead + d] + dt[h * kHead + d])) * decay[h]);
        for (std::size_t e = 0; e < kHead; ++e) m[d * kHead + e] *= keep;
      }
      Vector out(kHead);
      for (std::size_t e = 0; e < kHead; ++e) {
        double known = 0;
        for (std::size_t d = 0; d < kHead; ++d) known += m[d * kHead + e] * k[d];
        const double error = (mixed[2][h * kHead + e] - known) * sigmoid(b[h]);
        for (std::size_t d = 0; d < kHead; ++d) m[d * kHead + e] += k[d] * error;
        for (std::size_t d = 0; d < kHead; ++d) out[e] += m[d * kHead + e] * q[d];
        out[e] /= std::sqrt(static_cast<double>(kHead));
      }
      out = normed(out, head_norm);
      for (std::size_t e = 0; e < kHead; ++e) result[h * kHead + e] = out[e] * sigmoid(g[h * kHead + e]);
    }
    const Vector branch = times(part("attn_output.weight"), result);
    for (std::size_t c = 0; c < kWidth; ++c) x[c] += branch[c];
    EXPECT_LE(distance(kimi, std::span(rows).subspan(position * vocab, vocab), x), 2e-3) << position;
  }
}

}  // namespace
}  // namespace hk::test
