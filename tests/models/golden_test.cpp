// Trained models against their golden texts and logits, from GGUF and from the .hk made of it.
#include <gtest/gtest.h>

#include <fstream>

#include "engine/container/convert.h"
#include "engine/container/vocabulary.h"
#include "kernels/kernels.h"
#include "tests/models/fixture_model.h"
#include "tokenizer/tokenizer.h"

namespace hk::test {
namespace {

using engine::BatchItem;
using engine::LogitsFor;
using engine::TokenId;
using kernels::KvType;

std::vector<nlohmann::json> read_lines(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

std::vector<TokenId> continue_greedily(engine::Model& model, std::vector<TokenId> next, std::size_t n, TokenId stop,
                                       KvType kv) {
  const auto sequence = model.new_sequence({next.size() + n, kv});
  std::vector<TokenId> out;
  while (out.size() < n) {
    const BatchItem item{sequence.get(), next, LogitsFor::kLast};
    const TokenId best = best_token(model.forward({&item, 1}));
    if (best == stop) break;
    out.push_back(best);
    next = {best};
  }
  return out;
}

void check_demo(std::shared_ptr<engine::ModelReader> reader, const std::filesystem::path& folder) {
  engine::ThreadPool pool(2);
  for (const kernels::KernelTable* level : kernels::usable_levels()) {
    SCOPED_TRACE(level->level);
    const auto model = models::open(reader, pool, *level);
    EXPECT_EQ(model->info().parameters, 5246208u);
    EXPECT_TRUE(model->info().remarks.empty());
    const auto expected = read_array<float>(folder / "logits.bin");
    const auto index = read_json(folder / "logits.json");
    for (const nlohmann::json& prompt : index.at("prompts")) {
      const auto ids = prompt.at("ids").get<std::vector<TokenId>>();
      const auto logits = run_fresh(*model, {512, KvType::kF32}, ids, ids.size());
      const std::size_t offset = prompt.at("offset_bytes").get<std::size_t>() / sizeof(float);
      ASSERT_EQ(logits.size(), ids.size() * 2048);
      EXPECT_LE(max_difference(logits, std::span(expected).subspan(offset, logits.size())), 1e-3);
    }
  }
  const auto model = models::open(reader, pool);
  std::size_t checked = 0;
  for (const nlohmann::json& golden : read_lines(folder / "golden.jsonl")) {
    if (!golden.at("robust").get<bool>()) continue;
    const auto expected = golden.at("completion_ids").get<std::vector<TokenId>>();
    const bool stops = golden.at("finish") == "stop";
    for (const KvType kv : {KvType::kF32, KvType::kF16}) {
      const auto got =
          continue_greedily(*model, golden.at("prompt_ids").get<std::vector<TokenId>>(),
                            expected.size() + (stops ? 1 : 0), stops ? golden.at("stop_id").get<TokenId>() : -1, kv);
      EXPECT_EQ(got, expected) << golden.at("id") << (kv == KvType::kF16 ? " with a half precision cache" : "");
    }
    ++checked;
  }
  EXPECT_GT(checked, 20u);
}

TEST(Golden, Demo) {
  HK_FIXTURE(path, "models/demo/demo-f16.gguf");
  check_demo(engine::open_model(path.string()), path.parent_path());
}

TEST(Golden, DemoAsHk) {
  HK_FIXTURE(path, "models/demo/demo-f16.gguf");
  const TemporaryFolder folder;
  const std::string hk = (folder.path() / "demo.hk").string();
  engine::convert_model(*engine::open_model(path.string()), hk, {});
  check_demo(engine::open_model(hk), path.parent_path());
}

/// Every storage type the converter writes must still answer; the text is held to the original's only where that is
/// fair.
TEST(Golden, DemoAsOtherTypes) {
  HK_FIXTURE(path, "models/demo/demo-f16.gguf");
  const TemporaryFolder folder;
  engine::ThreadPool pool(2);
  const auto source = engine::open_model(path.string());
  const auto original = models::open(engine::open_model(path.string()), pool);
  const auto ids = read_json(path.parent_path() / "logits.json").at("prompts")[0].at("ids").get<std::vector<TokenId>>();
  const auto expected = run_fresh(*original, {512, KvType::kF32}, ids, ids.size());
  const std::pair<engine::StorageType, double> types[] = {{engine::StorageType::kF32, 1e-6},
                                                          {engine::StorageType::kBF16, 0.2},
                                                          {engine::StorageType::kQ8_0, 0.3},
                                                          {engine::StorageType::kQ4_K, 2.0}};
  for (const auto& [type, limit] : types) {
    const std::string name(kernels::storage_type_name(type));
    const std::string hk = (folder.path() / (name + ".hk")).string();
    engine::ConvertOptions options;
    options.type = type;
    engine::convert_model(*source, hk, options);
    const auto model = models::open(engine::open_model(hk), pool);
    EXPECT_LE(rms_difference(run_fresh(*model, {512, KvType::kF32}, ids, ids.size()), expected), limit) << name;
  }
}

TEST(Golden, Stories) {
  HK_FIXTURE(path, "models/stories260K/stories260K.gguf");
  const auto reader = std::shared_ptr<engine::ModelReader>(engine::open_model(path.string()));
  const auto tokenizer = engine::make_tokenizer(*reader);

  engine::ThreadPool pool(2);
  for (const kernels::KernelTable* level : kernels::usable_levels()) {
    const auto model = models::open(reader, pool, *level);
    for (const nlohmann::json& golden : read_lines(path.parent_path() / "golden.jsonl")) {
      const auto ids = continue_greedily(*model, tokenizer->encode(golden.at("prompt").get<std::string>(), {}),
                                         golden.at("n").get<std::size_t>(), 2, KvType::kF32);
      std::string text;
      for (const TokenId id : ids) text += tokenizer->piece(id);
      // One of the golden texts ends a few tokens before n; what it has must be what we say.
      const auto expected = golden.at("text").get<std::string>();
      EXPECT_GT(expected.size(), 250u);
      EXPECT_EQ(text.substr(0, expected.size()), expected) << level->level << ": " << golden.at("prompt");
    }
  }
}

}  // namespace
}  // namespace hk::test
