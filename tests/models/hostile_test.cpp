// Model files with senseless metadata or broken tensors: each key and each tensor of a model is spoilt in many ways,
// and the outcome is a sentence that names a key or a tensor, or a model that runs. Never a crash, a hang or gigabytes.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "tests/models/fixture_model.h"
#include "tests/support/edited_reader.h"

namespace hk::test {
namespace {

using engine::StorageType;
using engine::TensorView;
using engine::ValueType;

/// A file of each mechanism; HK_HOSTILE_ALL=1 takes all fixtures.
std::vector<std::string> hostile_models() {
  if (std::getenv("HK_HOSTILE_ALL") != nullptr) return fixture_names();
  return {"llama-yarn",     "gemma2-base", "gpt-oss-mxfp4", "phi3-longrope-long", "deepseek2-v3", "deepseek2-legacy",
          "llama4-16e",     "step35-base", "lfm2moe-base",  "qwen35moe-base",     "jamba-base",   "granitehybrid-moe",
          "falcon-h1-base", "rwkv6-base",  "rwkv7-base",    "gemma3n-base",       "gemma4-dense", "gemma4-moe",
          "mpt-base",       "grok-1",      "apertus-base",  "bailingmoe2-base"};
}

/// More than any of these tiny models needs, far less than what a large number in a key would ask for.
[[maybe_unused]] constexpr rlim_t kAddressSpace = rlim_t{3} << 30;

class Hostile : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    HK_FIXTURE(index, "fixtures/models/index.json");
    fixture_ = FixtureModel::load(GetParam());
    ASSERT_NE(fixture_, nullptr);
    reader_ = fixture_->reader();
    limit_memory(true);
  }
  void TearDown() override { limit_memory(false); }

  /// Sanitizers reserve terabytes of addresses for themselves; there the limit is the machine's.
  static void limit_memory(bool on) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
    static const rlimit usual = [] {
      rlimit limit{};
      getrlimit(RLIMIT_AS, &limit);
      return limit;
    }();
    const rlimit now{on ? std::min<rlim_t>(usual.rlim_cur, mapped() + kAddressSpace) : usual.rlim_cur, usual.rlim_max};
    setrlimit(RLIMIT_AS, &now);
#endif
#endif
#endif
    static_cast<void>(on);
  }
  static rlim_t mapped() {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    return pages * 4096;
  }

  /// Opens the edited model and feeds it a few tokens. A refusal must name the file and, in quotes, what is wrong.
  void outcome(const std::string& what, const std::function<void(EditedReader&)>& change) {
    SCOPED_TRACE(what);
    EditedReader edited(reader_);
    change(edited);
    try {
      const auto model = models::open(edited.finish(), pool_);
      const auto sequence = model->new_sequence({16, kernels::KvType::kF16});
      const std::vector<engine::TokenId> tokens{1, 2, 3, 0, 2};
      const engine::BatchItem prompt{sequence.get(), tokens, engine::LogitsFor::kAll};
      EXPECT_EQ(model->forward({&prompt, 1}).size(), tokens.size() * model->info().vocab_size);
      const engine::BatchItem next{sequence.get(), std::span(tokens).first(1), engine::LogitsFor::kLast};
      EXPECT_EQ(model->forward({&next, 1}).size(), model->info().vocab_size);
      ++runs_;
    } catch (const Error& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find(fixture_->path.string()), std::string::npos) << sentence;
      EXPECT_NE(sentence.find_first_of("'\""), std::string::npos) << sentence;
      ++refusals_;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "not a refusal: " << error.what();
    }
  }

  std::unique_ptr<FixtureModel> fixture_;
  std::shared_ptr<engine::ModelReader> reader_;
  engine::ThreadPool pool_{1};
  std::size_t runs_ = 0, refusals_ = 0;
};

TEST_P(Hostile, Metadata) {
  const std::string prefix = fixture_->record.at("architecture").get<std::string>() + ".";
  for (const engine::MetadataEntry& entry : reader_->metadata().entries()) {
    const std::string key(entry.key);
    if (!key.starts_with(prefix) && !key.starts_with("xielu.") && key != "general.architecture") continue;
    outcome(key + " removed", [&](EditedReader& e) { e.remove_key(key); });
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{3},
                                     (std::int64_t{1} << 31) - 1, std::int64_t{1} << 31, std::int64_t{1} << 62})
      outcome(key + " = " + std::to_string(value), [&](EditedReader& e) { e.set_integer(key, value); });
    for (const double value : {0.0, -1.0, 0.5, 1e-300, 1e300, std::nan(""), HUGE_VAL})
      outcome(key + " = " + std::to_string(value), [&](EditedReader& e) { e.set_number(key, value); });
    for (const char* list : {"[]", "[1]", "[0,0,0]", "[-1,2147483647,3]", "[1.5]", "[true,false]"})
      outcome(key + " = " + list, [&](EditedReader& e) { e.set_json(key, list); });
    outcome(key + " = text", [&](EditedReader& e) { e.set_text(key, "sideways"); });
  }
  EXPECT_GT(runs_, 0u);
  EXPECT_GT(refusals_, 20u);
}

TEST_P(Hostile, Tensors) {
  static const std::byte few[64] = {};
  for (const TensorView& original : reader_->tensors()) {
    const std::string name(original.name);
    outcome(name + " removed", [&](EditedReader& e) { e.remove_tensor(name); });
    const auto change = [&](const char* how, const std::function<void(TensorView&)>& f) {
      outcome(name + " " + how, [&](EditedReader& e) { f(*e.tensor(name)); });
    };
    change("one row more", [](TensorView& v) { ++v.shape[0]; });
    change("half as wide", [](TensorView& v) { v.shape[v.ndim - 1] = (v.shape[v.ndim - 1] + 1) / 2; });
    change("of a dimension more", [](TensorView& v) { v.shape[v.ndim++] = 1; });
    change("of one dimension", [](TensorView& v) {
      v.shape[0] = v.elements();
      v.ndim = 1;
    });
    change("of enormous rows", [](TensorView& v) { v.shape[0] = std::uint64_t{1} << 62; });
    change("cut short", [](TensorView& v) { v.data = v.data.first(v.data.size() - 1); });
    change("nearly empty",
           [](TensorView& v) { v.data = std::span(few).first(std::min<std::size_t>(2, v.data.size())); });
    for (const StorageType type : {StorageType::kQ4_K, StorageType::kQ8_0, StorageType::kF16, StorageType::kF64,
                                   StorageType::kInt32, StorageType::kQ8_K, static_cast<StorageType>(0x7f)})
      change("of another type", [&](TensorView& v) { v.type = type; });
  }
  EXPECT_GT(refusals_, reader_->tensors().size());
}

INSTANTIATE_TEST_SUITE_P(Models, Hostile, testing::ValuesIn(hostile_models()),
                         [](const auto& instance) { return test_name(instance.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Hostile);

}  // namespace
}  // namespace hk::test
