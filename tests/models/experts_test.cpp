// Mixtures of experts in the ways files store them, and what a file with broken ones is told.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/models/fixture_model.h"
#include "tests/support/edited_reader.h"

namespace hk::test {
namespace {

class Mixtures : public testing::Test {
 protected:
  void load(const char* name) {
    fixture_ = FixtureModel::load(name);
    ASSERT_NE(fixture_, nullptr);
  }
  EditedReader edit() const { return EditedReader(fixture_->reader()); }
  std::vector<float> logits(const EditedReader& edited) {
    const auto model = models::open(edited.finish(), pool_);
    EXPECT_TRUE(model->info().remarks.empty());
    return run_fresh(*model, {fixture_->n_ctx, kernels::KvType::kF32}, fixture_->tokens, 48);
  }
  std::string refusal(const std::function<void(EditedReader&)>& change) {
    EditedReader edited = edit();
    change(edited);
    try {
      models::open(edited.finish(), pool_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static std::vector<float> values(const engine::TensorView& view) {
    std::vector<float> out(view.elements());
    std::memcpy(out.data(), view.data.data(), out.size() * sizeof(float));
    return out;
  }
  static std::string part(int layer, const std::string& name) { return "blk." + std::to_string(layer) + "." + name; }

  engine::ThreadPool pool_{2};
  std::unique_ptr<FixtureModel> fixture_;
};

TEST_F(Mixtures, OneTensorForEachExpert) {
  HK_FIXTURE(present, "fixtures/models/llama-moe.gguf.zst");
  load("llama-moe");
  EditedReader split = edit();
  for (int layer = 0; layer < 3; ++layer) {
    for (const char* name : {"ffn_gate", "ffn_up", "ffn_down"}) {
      const std::string together = part(layer, std::string(name) + "_exps.weight");
      const engine::TensorView view = *split.tensor(together);
      const std::vector<float> all = values(view);
      const auto each = static_cast<std::ptrdiff_t>(view.shape[1] * view.shape[2]);
      for (int e = 0; e < 8; ++e)
        split.set_tensor(part(layer, std::string(name) + "." + std::to_string(e) + ".weight"),
                         {view.shape[1], view.shape[2]}, {all.begin() + e * each, all.begin() + (e + 1) * each});
      split.remove_tensor(together);
    }
  }
  EXPECT_EQ(logits(split), logits(edit()));
}

TEST_F(Mixtures, GateAndUpInOneTensor) {
  HK_FIXTURE(present, "fixtures/models/qwen3moe-base.gguf.zst");
  load("qwen3moe-base");
  EditedReader fused = edit();
  for (int layer = 0; layer < 3; ++layer) {
    const engine::TensorView view = *fused.tensor(part(layer, "ffn_gate_exps.weight"));
    const std::vector<float> gate = values(view), up = values(*fused.tensor(part(layer, "ffn_up_exps.weight")));
    const auto each = static_cast<std::ptrdiff_t>(view.shape[1] * view.shape[2]);
    std::vector<float> both;
    for (std::ptrdiff_t e = 0; e < static_cast<std::ptrdiff_t>(view.shape[0]); ++e) {
      both.insert(both.end(), gate.begin() + e * each, gate.begin() + (e + 1) * each);
      both.insert(both.end(), up.begin() + e * each, up.begin() + (e + 1) * each);
    }
    fused.remove_tensor(part(layer, "ffn_gate_exps.weight")).remove_tensor(part(layer, "ffn_up_exps.weight"));
    fused.set_tensor(part(layer, "ffn_gate_up_exps.weight"), {view.shape[0], 2 * view.shape[1], view.shape[2]}, both);
  }
  EXPECT_EQ(logits(fused), logits(edit()));
}

TEST_F(Mixtures, ATokenReadsItsExpertsOnly) {
  HK_FIXTURE(present, "fixtures/models/llama-moe.gguf.zst");
  load("llama-moe");
  const auto model = models::open(fixture_->reader(), pool_);
  const std::uint64_t expert = 3 * 32 * 64 * sizeof(float);
  const std::uint64_t embedding = 511 * 64 * sizeof(float);
  EXPECT_EQ(model->info().weight_bytes - model->info().weight_bytes_per_token, 3 * 6 * expert + embedding);
}

TEST_F(Mixtures, Refusals) {
  HK_FIXTURE(present, "fixtures/models/deepseek2-v3.gguf.zst");
  load("deepseek2-v3");
  const auto integer = [&](const char* key, std::int64_t value) {
    return refusal([&](EditedReader& e) { e.set_integer(key, value); });
  };
  EXPECT_EQ(refusal([](EditedReader&) {}), "");
  EXPECT_NE(integer("deepseek2.expert_used_count", 17).find("at most the 16 experts"), std::string::npos);
  EXPECT_NE(integer("deepseek2.expert_count", 15).find("deepseek2.expert_group_count"), std::string::npos);
  EXPECT_NE(integer("deepseek2.expert_gating_func", 4).find("softmax over the chosen"), std::string::npos);
  EXPECT_NE(integer("deepseek2.expert_group_count", 5).find("a divisor of the 16 experts"), std::string::npos);
  EXPECT_NE(integer("deepseek2.expert_group_used_count", 5).find("5 of 4 groups"), std::string::npos);
  EXPECT_NE(integer("deepseek2.expert_feed_forward_length", 23).find("blk.1.ffn_gate_exps.weight"), std::string::npos);
  EXPECT_NE(integer("deepseek2.attention.kv_lora_rank", 31).find("blk.0.attn_kv_a_mqa.weight"), std::string::npos);
  EXPECT_NE(integer("deepseek2.rope.dimension_count", 24).find("less than the head size 24"), std::string::npos);
  for (const char* tensor : {"blk.1.ffn_gate_inp.weight", "blk.2.ffn_down_exps.weight", "blk.3.ffn_up_shexp.weight",
                             "blk.0.attn_v_b.weight", "blk.0.attn_q_b.weight"})
    EXPECT_NE(refusal([&](EditedReader& e) { e.remove_tensor(tensor); }).find(tensor), std::string::npos) << tensor;
  EXPECT_NE(refusal([](EditedReader& e) { e.tensor("blk.1.ffn_up_exps.weight")->shape[0] = 8; }).find("[8, 24, 64]"),
            std::string::npos);
  EXPECT_NE(refusal([](EditedReader& e) {
              engine::TensorView& view = *e.tensor("blk.1.ffn_up_exps.weight");
              view.data = view.data.first(view.data.size() - 4);
            }).find("too few"),
            std::string::npos);
}

}  // namespace
}  // namespace hk::test
