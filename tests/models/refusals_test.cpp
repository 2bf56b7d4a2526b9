// What `open` refuses, and that each sentence names the file, the key or tensor, what was found and what was expected.
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tests/models/fixture_model.h"
#include "tests/support/edited_reader.h"

namespace hk::test {
namespace {

class Refusals : public testing::Test {
 protected:
  void SetUp() override {
    HK_FIXTURE(index, "fixtures/models/llama-plain.gguf.zst");
    fixture_ = FixtureModel::load("llama-plain");
    ASSERT_NE(fixture_, nullptr);
  }
  /// The sentence with which an edited model is refused; "" when it opens.
  std::string refusal(const std::function<void(EditedReader&)>& edit) {
    EditedReader edited(fixture_->reader());
    edit(edited);
    try {
      models::open(edited.finish(), pool_);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(fixture_->path.string()), std::string::npos) << error.what();
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return error.what();
    }
    return "";
  }
  void expect_words(const std::string& sentence, const std::vector<std::string>& words) {
    for (const std::string& word : words)
      EXPECT_NE(sentence.find(word), std::string::npos) << sentence << "\nlacks " << word;
  }

  engine::ThreadPool pool_{1};
  std::unique_ptr<FixtureModel> fixture_;
};

TEST_F(Refusals, TheUneditedModelOpens) {
  EXPECT_EQ(refusal([](EditedReader&) {}), "");
}

TEST_F(Refusals, Architecture) {
  expect_words(refusal([](EditedReader& e) { e.set_text("general.architecture", "llamma"); }), {"'llamma'", "llama"});
  expect_words(refusal([](EditedReader& e) { e.remove_key("general.architecture"); }), {"general.architecture"});
  EXPECT_EQ(refusal([](EditedReader& e) { e.remove_key("general.architecture").set_text("architecture", "llama"); }),
            "");
  EXPECT_NE(refusal([](EditedReader& e) { e.set_integer("general.architecture", 3); }), "");
}

TEST_F(Refusals, MissingKeys) {
  for (const char* key : {"block_count", "embedding_length", "context_length", "feed_forward_length",
                          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    const std::string whole = std::string("llama.") + key;
    expect_words(refusal([&](EditedReader& e) { e.remove_key(whole); }), {"'" + whole + "'", "missing"});
  }
}

TEST_F(Refusals, SenselessNumbers) {
  const auto integer = [&](const char* key, std::int64_t value) {
    return refusal([&](EditedReader& e) { e.set_integer(key, value); });
  };
  const auto number = [&](const char* key, double value) {
    return refusal([&](EditedReader& e) { e.set_number(key, value); });
  };
  for (const char* key : {"llama.block_count", "llama.embedding_length", "llama.context_length",
                          "llama.attention.head_count", "llama.attention.head_count_kv", "llama.attention.key_length",
                          "llama.rope.dimension_count", "llama.feed_forward_length"}) {
    for (const std::int64_t value : {std::int64_t{-1}, std::int64_t{1} << 31, std::int64_t{1} << 62})
      expect_words(integer(key, value), {key, std::to_string(value)});
  }
  for (const char* key :
       {"llama.block_count", "llama.embedding_length", "llama.context_length", "llama.attention.key_length"})
    expect_words(integer(key, 0), {key, "0"});
  expect_words(integer("llama.attention.head_count_kv", 3), {"llama.attention.head_count_kv", "3", "4 heads"});
  expect_words(integer("llama.attention.head_count", 0), {"head_count"});
  expect_words(integer("llama.rope.dimension_count", 7), {"llama.rope.dimension_count", "7", "even"});
  expect_words(integer("llama.rope.dimension_count", 18), {"llama.rope.dimension_count", "18", "16"});
  expect_words(integer("llama.expert_count", 8), {"llama.expert_used_count", "missing"});
  expect_words(number("llama.rope.freq_base", 0.5), {"llama.rope.freq_base", "0.5"});
  expect_words(number("llama.rope.freq_base", std::nan("")), {"llama.rope.freq_base", "finite"});
  expect_words(number("llama.attention.layer_norm_rms_epsilon", -1), {"layer_norm_rms_epsilon", "-1"});
  expect_words(number("llama.rope.scaling.factor", -4), {"llama.rope.scaling.factor", "-4"});
  // Far more layers than there are tensors must not end in an allocation.
  expect_words(integer("llama.block_count", 2147483647), {"llama.block_count", "39 tensors"});
  expect_words(integer("llama.block_count", 5), {"blk.4.", "missing"});
  expect_words(number("llama.rope.freq_base", 1e300), {"llama.rope.freq_base", "single precision"});
}

TEST_F(Refusals, PerLayerLists) {
  EXPECT_EQ(refusal([](EditedReader& e) { e.set_json("llama.attention.head_count_kv", "[2,2,2,2]"); }), "");
  expect_words(refusal([](EditedReader& e) { e.set_json("llama.attention.head_count_kv", "[2,2,2]"); }),
               {"llama.attention.head_count_kv", "list of 3", "4 layers"});
  expect_words(refusal([](EditedReader& e) { e.set_json("llama.feed_forward_length", "[112,112,112,-1]"); }),
               {"llama.feed_forward_length", "-1"});
  expect_words(refusal([](EditedReader& e) { e.set_json("llama.feed_forward_length", "[112,112,80,112]"); }),
               {"blk.2.ffn_gate.weight", "[112, 64]", "[80, 64]"});
}

TEST_F(Refusals, Rotation) {
  const auto text = [&](const char* key, const char* value) {
    return refusal([&](EditedReader& e) { e.set_text(key, value); });
  };
  expect_words(text("llama.rope.scaling.type", "dynamic"), {"llama.rope.scaling.type", "dynamic", "yarn", "llama3"});
  expect_words(text("llama.rope.scaling.type", "longrope"), {"longrope", "rope_factors_long.weight"});
  expect_words(text("hk.rope_style", "sideways"), {"hk.rope_style", "sideways", "neox"});
  EXPECT_EQ(text("llama.rope.scaling.type", "none"), "");
  EXPECT_EQ(text("llama.rope.scaling.type", "yarn"), "");
  expect_words(refusal([](EditedReader& e) {
                 e.set_text("llama.rope.scaling.type", "yarn")
                     .set_number("hk.rope.beta_fast", 1)
                     .set_number("hk.rope.beta_slow", 32);
               }),
               {"beta_fast", "1, 32"});
  expect_words(refusal([](EditedReader& e) {
                 e.set_text("llama.rope.scaling.type", "llama3").set_number("hk.rope.high_freq_factor", 1);
               }),
               {"hk.rope.high_freq_factor"});
  expect_words(refusal([](EditedReader& e) { e.set_tensor("rope_freqs.weight", {8}, std::vector<float>(8, 0.0F)); }),
               {"rope_freqs.weight", "0"});
  expect_words(refusal([](EditedReader& e) { e.set_tensor("rope_freqs.weight", {7}, std::vector<float>(7, 1.0F)); }),
               {"rope_freqs.weight", "[7]", "[8]"});
}

TEST_F(Refusals, MissingAndMisshapenTensors) {
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.1.attn_q.weight",
                           "blk.2.attn_k.weight", "blk.3.attn_v.weight", "blk.0.attn_output.weight",
                           "blk.1.ffn_norm.weight", "blk.3.ffn_up.weight", "blk.0.ffn_down.weight"})
    expect_words(refusal([&](EditedReader& e) { e.remove_tensor(name); }),
                 {std::string("'") + name + "'", "missing", "shape"});
  // Without the gate the up matrix would have to hold both halves.
  expect_words(refusal([](EditedReader& e) { e.remove_tensor("blk.2.ffn_gate.weight"); }),
               {"blk.2.ffn_up.weight", "[224, 64]"});
  expect_words(refusal([](EditedReader& e) { e.tensor("blk.0.attn_q.weight")->shape[0] = 32; }),
               {"blk.0.attn_q.weight", "[64, 64]"});
  expect_words(refusal([](EditedReader& e) {
                 engine::TensorView& view = *e.tensor("blk.0.attn_q.weight");
                 view.ndim = 1;
                 view.shape[0] = 4096;
               }),
               {"blk.0.attn_q.weight", "[4096]", "[64, 64]"});
  expect_words(refusal([](EditedReader& e) { e.tensor("output_norm.weight")->shape[0] = 32; }),
               {"output_norm.weight", "[32]", "[64]"});
  expect_words(refusal([](EditedReader& e) { e.tensor("token_embd.weight")->shape[1] = 32; }),
               {"token_embd.weight", "64]"});
  expect_words(refusal([](EditedReader& e) {
                 engine::TensorView& view = *e.tensor("output.weight");
                 view.data = view.data.first(view.data.size() - 4);
               }),
               {"output.weight", "bytes"});
  expect_words(refusal([](EditedReader& e) { e.set_tensor("blk.0.attn_q.bias", {63}, std::vector<float>(63)); }),
               {"blk.0.attn_q.bias", "[63]", "[64]"});
}

TEST_F(Refusals, StorageThatIsNotRun) {
  const auto with = [&](const std::function<void(engine::TensorView&)>& change) {
    return refusal([&](EditedReader& e) { change(*e.tensor("blk.1.ffn_up.weight")); });
  };
  using engine::StorageType;
  for (const StorageType type : {StorageType::kDQ4, StorageType::kDQ6, StorageType::kNullRef, StorageType::kSparseF16,
                                 StorageType::kLoraRef, StorageType::kInt32, static_cast<StorageType>(0x7f)})
    expect_words(with([&](engine::TensorView& v) { v.type = type; }),
                 {"blk.1.ffn_up.weight", std::string(kernels::storage_type_name(type))});
  expect_words(with([](engine::TensorView& v) { v.type = StorageType::kQ4_K; }), {"blk.1.ffn_up.weight", "64", "256"});
  expect_words(with([](engine::TensorView& v) { v.tile_layout = engine::TileLayout::kTile16x16; }),
               {"blk.1.ffn_up.weight", "row-major"});
  expect_words(with([](engine::TensorView& v) { v.sparsity = engine::Sparsity::kBitmask; }),
               {"blk.1.ffn_up.weight", "dense"});
  expect_words(with([](engine::TensorView& v) { v.scales = v.data.first(4); }), {"blk.1.ffn_up.weight", "scales"});
  expect_words(with([](engine::TensorView& v) { v.residual = v.data.first(4); }), {"blk.1.ffn_up.weight", "residuals"});
  expect_words(with([&](engine::TensorView& v) { v.problem = fixture_->path.string() + ": the reader's sentence"; }),
               {"the reader's sentence"});
  expect_words(with([](engine::TensorView& v) {
                 static const std::byte elsewhere[1 << 16] = {};
                 v.type = StorageType::kSharedRef;
                 v.data = elsewhere;
               }),
               {"blk.1.ffn_up.weight", "no other tensor"});
}

TEST_F(Refusals, VocabularyWiderThanTheEmbedding) {
  expect_words(refusal([](EditedReader& e) {
                 std::string list = "[";
                 for (int i = 0; i < 513; ++i) list += i == 0 ? "\"a\"" : ",\"a\"";
                 e.set_json("tokenizer.ggml.tokens", list + "]");
               }),
               {"513", "512"});
}

TEST_F(Refusals, UnusedKeysAreRemarked) {
  EditedReader edited(fixture_->reader());
  edited.set_number("llama.attention.unheard_of", 2).set_integer("other.block_count", 3);
  edited.set_integer("llama.vocab_size", 512);  // says what the embedding says
  const auto model = models::open(edited.finish(), pool_);
  ASSERT_EQ(model->info().remarks.size(), 1u);
  EXPECT_EQ(model->info().remarks[0], "the key 'llama.attention.unheard_of' is not used by the llama model");
}

TEST_F(Refusals, UnusedTensorsAreRemarked) {
  EditedReader edited(fixture_->reader());
  edited.set_tensor("blk.0.attn_q_norm.weight", {16}, std::vector<float>(16, 1.0F));
  const auto model = models::open(edited.finish(), pool_);
  ASSERT_EQ(model->info().remarks.size(), 1u);
  EXPECT_NE(model->info().remarks[0].find("blk.0.attn_q_norm.weight"), std::string::npos);
}

}  // namespace
}  // namespace hk::test
