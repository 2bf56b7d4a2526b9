// State of recurrent layers: kept positions, going back, forks, taken-back calls, and the bytes it takes.
#include <gtest/gtest.h>

#include <random>

#include "models/recurrent_state.h"
#include "tests/models/fixture_model.h"

namespace hk::test {
namespace {

using engine::BatchItem;
using engine::LogitsFor;
using engine::TokenId;
using kernels::KvType;
using models::RecurrentState;

/// Advances by `tokens` in chunks that end at pages; the state is a count of positions.
void advance(RecurrentState& state, std::size_t& position, std::size_t tokens) {
  state.begin_call(position);
  const std::size_t end = position + tokens;
  while (position < end) {
    const std::size_t next = std::min(end, (position / 256 + 1) * 256);
    state.prepare();
    *state.write() = *state.read() + static_cast<float>(next - position);
    state.commit(next);
    position = next;
  }
  state.end_call(tokens);
}

float present(RecurrentState& state) {
  state.prepare();
  return *state.read();
}

TEST(RecurrentStates, PagesAreKeptEverMoreSparsely) {
  RecurrentState state(1);
  std::size_t position = 0;
  for (std::size_t i = 0; i < 64 * 256; ++i) advance(state, position, 1);
  EXPECT_EQ(state.reachable(position, position), position);
  EXPECT_EQ(state.reachable(position - 1, position), 63 * 256u);
  EXPECT_LE(state.bytes(), RecurrentState::most_bytes(1, position));
  EXPECT_LE(state.bytes(), 12 * sizeof(float));
  for (std::size_t back = 2; back <= 32; back *= 2) {
    // At most twice as far back as asked for.
    const std::size_t wanted = position - back * 256;
    const std::size_t reached = state.reachable(wanted, position);
    EXPECT_LE(position - reached, 2 * back * 256) << back;
  }
  const std::size_t reached = state.reachable(40 * 256, position);
  state.go_back(reached, position);
  EXPECT_EQ(present(state), static_cast<float>(reached));
  position = reached;
  advance(state, position, 300);
  EXPECT_EQ(present(state), static_cast<float>(reached + 300));
  state.go_back(0, position);
  EXPECT_EQ(present(state), 0.0F);
}

TEST(RecurrentStates, TheLastPromptsCanBeTakenBack) {
  RecurrentState state(3);
  std::size_t position = 0;
  advance(state, position, 10);
  for (int i = 0; i < 5; ++i) advance(state, position, 1);
  advance(state, position, 7);  // from 15
  for (int i = 0; i < 5; ++i) advance(state, position, 1);
  advance(state, position, 7);  // from 27
  EXPECT_EQ(state.reachable(33, position), 27u);
  EXPECT_EQ(state.reachable(26, position), 15u);
  EXPECT_EQ(state.reachable(14, position), 0u);
  EXPECT_LE(state.bytes(), RecurrentState::most_bytes(3, position));
  RecurrentState fork(state);
  state.go_back(27, position);
  EXPECT_EQ(present(state), 27.0F);
  EXPECT_EQ(present(fork), 34.0F);
  std::size_t other = 34;
  advance(fork, other, 2);
  EXPECT_EQ(present(state), 27.0F);
  EXPECT_EQ(present(fork), 36.0F);
}

class Recurrent : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    HK_FIXTURE(present, std::string("fixtures/models/") + GetParam() + ".gguf.zst");
    fixture_ = FixtureModel::load(GetParam());
    ASSERT_NE(fixture_, nullptr);
    model_ = models::open(fixture_->reader(), pool_);
    vocab_ = model_->info().vocab_size;
    std::mt19937 random(11);
    for (int i = 0; i < 700; ++i) tokens_.push_back(static_cast<TokenId>(random() % vocab_));
    whole_ = run_fresh(*model_, kOptions, tokens_, tokens_.size());
  }
  void expect_rest(engine::Sequence& sequence) {
    const std::size_t from = sequence.length();
    const auto rest = run(*model_, sequence, std::span(tokens_).subspan(from), 97);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(), whole_.begin() + static_cast<std::ptrdiff_t>(from * vocab_)))
        << from;
  }

  static constexpr engine::SequenceOptions kOptions{800, KvType::kF16};
  engine::ThreadPool pool_{2};
  std::unique_ptr<FixtureModel> fixture_;
  std::unique_ptr<engine::Model> model_;
  std::size_t vocab_ = 0;
  std::vector<TokenId> tokens_;
  std::vector<float> whole_;
};

TEST_P(Recurrent, ForksPartAndKeepTheirOwnPast) {
  for (const std::size_t cut : {std::size_t{1}, std::size_t{256}, std::size_t{300}}) {
    const auto trunk = model_->new_sequence(kOptions);
    run(*model_, *trunk, std::span(tokens_).first(cut), cut);
    const auto branch = trunk->fork();
    const std::vector<TokenId> other(60, 3);
    const auto first = run(*model_, *branch, other, 7);
    expect_rest(*trunk);
    const auto again = model_->new_sequence(kOptions);
    run(*model_, *again, std::span(tokens_).first(cut), 100);
    EXPECT_EQ(run(*model_, *again, other, 60), first) << cut;
  }
}

TEST_P(Recurrent, GoesBackToPromptsAndPages) {
  const auto s = model_->new_sequence(kOptions);
  run(*model_, *s, std::span(tokens_).first(600), 600);
  run(*model_, *s, std::span(tokens_).subspan(600, 20), 1);
  run(*model_, *s, std::span(tokens_).subspan(620), 80);
  EXPECT_LE(s->state_bytes(), model_->state_bytes(kOptions, s->length()));
  EXPECT_EQ(s->truncate(650), 620u);
  expect_rest(*s);
  EXPECT_EQ(s->truncate(600), 512u);
  expect_rest(*s);
  EXPECT_EQ(s->truncate(511), 256u);
  expect_rest(*s);
  EXPECT_EQ(s->truncate(255), 0u);
  EXPECT_EQ(s->state_bytes() > 0, true);  // one block waits for the next chunk
  expect_rest(*s);
}

TEST_P(Recurrent, ACancelledCallChangesNothing) {
  for (const std::size_t start : {std::size_t{0}, std::size_t{70}, std::size_t{256}}) {
    for (const int polls : {0, 3, 7}) {
      const auto s = model_->new_sequence(kOptions);
      if (start != 0) run(*model_, *s, std::span(tokens_).first(start), 64);
      int asked = 0;
      const BatchItem item{s.get(), std::span(tokens_).subspan(start), LogitsFor::kAll};
      EXPECT_TRUE(model_->forward({&item, 1}, {[&] { return asked++ == polls; }, {}}).empty());
      EXPECT_EQ(s->length(), start);
      expect_rest(*s);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Recurrent,
                         testing::Values("lfm2-base", "qwen35-base", "mamba-falcon", "nemotron_h-dense", "rwkv6-base",
                                         "rwkv7-base"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hk::test
