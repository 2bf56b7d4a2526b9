// The memory of a conversation in a file: it comes back as it was, also after going back, for windows and recurrent
// layers; damage and foreign files cost reading again and nothing else.
#include "engine/generate/state_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "engine/container/fingerprint.h"
#include "tests/models/fixture_model.h"

namespace hk::test {
namespace {

using engine::Session;
using engine::StateFile;
using engine::TokenId;

constexpr std::size_t kContext = 900;

class StateFiles : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    HK_FIXTURE(index, std::string("fixtures/models/") + GetParam() + ".gguf.zst");
    fixture_ = FixtureModel::load(GetParam());
    ASSERT_NE(fixture_, nullptr);
    model_ = models::open(fixture_->reader(), pool_);
    std::mt19937 random(5);
    for (int i = 0; i < 700; ++i) tokens_.push_back(static_cast<TokenId>(random() % model_->info().vocab_size));
  }
  std::unique_ptr<Session> session() {
    return std::make_unique<Session>(*model_, engine::SequenceOptions{kContext, kernels::KvType::kF16});
  }
  std::vector<float> read(Session& session, std::size_t from, std::size_t to) {
    return copy(session.append(std::span(tokens_).subspan(from, to - from)));
  }
  std::string path() const { return (folder_.path() / "state").string(); }

  TemporaryFolder folder_;
  engine::ThreadPool pool_{1};
  std::unique_ptr<FixtureModel> fixture_;
  std::unique_ptr<engine::Model> model_;
  std::vector<TokenId> tokens_;
};

TEST_P(StateFiles, GoesOnAsIfNothingHadHappened) {
  const auto whole = session();
  read(*whole, 0, 650);
  const auto wanted = read(*whole, 650, 700);
  StateFile file(path(), 1);
  const auto first = session();
  // In several saves, each of which adds to a page that is not full.
  for (const std::size_t end : {100u, 300u, 301u, 650u}) {
    read(*first, first->history().size(), end);
    file.save(*first);
    EXPECT_LE(std::filesystem::file_size(path()), file.size_after_save(*first));
  }
  const auto second = session();
  StateFile again(path(), 1);
  const auto loaded = again.load(*second);
  EXPECT_EQ(loaded.positions, 650u);
  EXPECT_EQ(loaded.problem, "");
  EXPECT_EQ(read(*second, 650, 700), wanted);
}

TEST_P(StateFiles, AfterGoingBack) {
  StateFile file(path(), 1);
  const auto first = session();
  read(*first, 0, 600);
  file.save(*first);
  // Another text from position 299 on (or from the beginning, where the model cannot go back).
  std::vector<TokenId> other(tokens_.begin(), tokens_.begin() + 400);
  std::fill(other.begin() + 299, other.end(), 3);
  const auto reused = first->reuse(other);
  first->append(std::span(other).subspan(reused));
  file.save(*first);
  const auto wanted = copy(first->append(std::span(tokens_).first(10)));
  const auto second = session();
  StateFile again(path(), 1);
  EXPECT_EQ(again.load(*second).positions, 400u);
  EXPECT_TRUE(std::equal(other.begin(), other.end(), second->history().begin()));
  EXPECT_EQ(copy(second->append(std::span(tokens_).first(10))), wanted);
  // Nothing to remember: no file.
  first->clear();
  file.save(*first);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_P(StateFiles, DamageAnywhereIsNoticed) {
  {
    StateFile file(path(), 1);
    const auto first = session();
    read(*first, 0, 600);
    file.save(*first);
  }
  const auto bytes = read_file(path());
  std::mt19937_64 random(9);
  const auto write = [&](std::span<const std::byte> content) {
    std::ofstream(path(), std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  };
  const auto check = [&] {
    const auto second = session();
    StateFile file(path(), 1);
    const auto loaded = file.load(*second);
    EXPECT_EQ(second->history().size(), loaded.positions);
    // What is restored is right: reading the rest gives the same.
    EXPECT_TRUE(std::equal(second->history().begin(), second->history().end(), tokens_.begin()));
    return loaded.positions;
  };
  EXPECT_EQ(check(), 600u);
  for (int round = 0; round < 40; ++round) {
    auto damaged = bytes;
    damaged[random() % damaged.size()] ^= std::byte{0x10};
    write(damaged);
    check();
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{50}, bytes.size() / 3, bytes.size() - 1}) {
    write(std::span(bytes).first(size));
    EXPECT_LT(check(), 600u) << size;
  }
}

TEST_P(StateFiles, ForeignFilesAreNotUsed) {
  {
    StateFile file(path(), 1);
    const auto first = session();
    read(*first, 0, 300);
    file.save(*first);
  }
  const auto second = session();
  StateFile other(path(), 2);
  const auto loaded = other.load(*second);
  EXPECT_EQ(loaded.positions, 0u);
  EXPECT_NE(loaded.problem.find("another model"), std::string::npos) << loaded.problem;
  // It is replaced by what this one remembers.
  read(*second, 0, 20);
  other.save(*second);
  const auto third = session();
  StateFile again(path(), 2);
  EXPECT_EQ(again.load(*third).positions, 20u);
  const auto fourth = session();
  StateFile missing((folder_.path() / "missing").string(), 1);
  EXPECT_EQ(missing.load(*fourth).positions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, StateFiles, testing::Values("llama-plain", "gemma3-base", "jamba-base", "mamba-base"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(Fingerprint, TellsModelsApart) {
  HK_FIXTURE(index, "fixtures/models/llama-plain.gguf.zst");
  const auto plain = FixtureModel::load("llama-plain");
  const auto same = engine::model_fingerprint(*plain->reader());
  EXPECT_EQ(engine::model_fingerprint(*plain->reader()), same);
  const auto demo = engine::open_model(std::string(source_root()) + "/demo/hinoki.hk");
  EXPECT_NE(engine::model_fingerprint(*demo), same);
}

}  // namespace
}  // namespace hk::test
