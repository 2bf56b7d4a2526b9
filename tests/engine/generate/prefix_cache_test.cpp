// The prefix cache: what is found and shared, where snapshots pay, what leaves when memory ends; and a long random life
// against a plain list of prompts.
#include "engine/generate/prefix_cache.h"

#include <gtest/gtest.h>

#include <random>

#include "toy_model.h"

namespace hk::engine {
namespace {

using test::ToySequence;
using Ids = std::vector<TokenId>;

constexpr std::size_t kPage = kernels::kKvPage;

PrefixCache::Memory pages() {
  return {[](std::size_t positions) { return (positions + kPage - 1) / kPage * kPage; }, kPage};
}

std::unique_ptr<ToySequence> sequence_of(const Ids& ids, std::size_t step = 1) {
  auto sequence = std::make_unique<ToySequence>(100000, step);
  sequence->tokens = ids;
  return sequence;
}

Ids tokens_of(const PrefixCache::Match& match) {
  return match.sequence == nullptr ? Ids{} : static_cast<const ToySequence&>(*match.sequence).tokens;
}

Ids numbers(TokenId from, std::size_t count) {
  Ids ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = from + static_cast<TokenId>(i);
  return ids;
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(PrefixCache, EmptyFindsNothing) {
  PrefixCache cache(1000, pages());
  EXPECT_EQ(cache.find(Ids{1, 2}), 0u);
  EXPECT_EQ(tokens_of(cache.take(Ids{1, 2})), Ids{});
  EXPECT_EQ(tokens_of(cache.take(Ids{})), Ids{});
  EXPECT_FALSE(cache.evict());
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(PrefixCache, CutsALongerSnapshotBack) {
  PrefixCache cache(1000, pages());
  ASSERT_TRUE(cache.store(Ids{1, 2, 3, 4}, sequence_of({1, 2, 3, 4})));
  EXPECT_EQ(cache.find(Ids{1, 2, 9}), 2u);
  EXPECT_EQ(tokens_of(cache.take(Ids{1, 2, 9})), (Ids{1, 2}));
  EXPECT_EQ(tokens_of(cache.take(Ids{1, 2})), (Ids{1, 2}));
  EXPECT_EQ(tokens_of(cache.take(Ids{1, 2, 3, 4, 5})), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(tokens_of(cache.take(Ids{2})), Ids{});
}

TEST(PrefixCache, FallsBackToAnExactSnapshotWhenCuttingLosesMore) {
  PrefixCache cache(5000, pages());
  const Ids stem = numbers(1, 10);
  ASSERT_TRUE(cache.store(stem, sequence_of(stem, 1000)));
  const Ids leaf = joined(stem, numbers(50, 10));
  ASSERT_TRUE(cache.store(leaf, sequence_of(leaf, 1000)));  // like recurrent state: goes back to the start only
  EXPECT_EQ(tokens_of(cache.take(joined(stem, {50, 51, 7}))), stem);
  EXPECT_EQ(tokens_of(cache.take(leaf)), leaf);
}

TEST(PrefixCache, MarksWhereAnnouncedPromptsPart) {
  PrefixCache cache(5000, pages());
  const Ids stem = numbers(1, 40);
  const Ids a = joined(stem, {100, 101}), b = joined(stem, {200});
  cache.announce(a);
  EXPECT_EQ(cache.next_mark(a, 0), 0u);  // alone: nobody to keep anything for
  cache.announce(b);
  EXPECT_EQ(cache.next_mark(a, 0), 40u);
  EXPECT_EQ(cache.next_mark(b, 39), 40u);
  EXPECT_EQ(cache.next_mark(a, 40), 0u);
  ASSERT_TRUE(cache.store(stem, sequence_of(stem)));
  EXPECT_EQ(cache.next_mark(b, 0), 0u);
  cache.withdraw(b);
  cache.withdraw(a);
  EXPECT_EQ(tokens_of(cache.take(b)), stem);
}

TEST(PrefixCache, NoMarkWhereItSavesLittle) {
  PrefixCache cache(5000, pages());
  const Ids a = {1, 2, 3, 10}, b = {1, 2, 3, 11};
  cache.announce(a);
  cache.announce(b);
  EXPECT_EQ(cache.next_mark(a, 0), 0u);
  for (TokenId id = 20; id < 40; ++id) cache.announce(Ids{1, 2, 3, id});
  EXPECT_EQ(cache.next_mark(a, 0), 3u);  // three tokens, but for twenty others
}

TEST(PrefixCache, MarksTheEndOfEqualPrompts) {
  PrefixCache cache(5000, pages());
  const Ids a = numbers(1, 30);
  cache.announce(a);
  cache.announce(a);
  EXPECT_EQ(cache.next_mark(a, 0), 30u);
}

TEST(PrefixCache, LeastRecentlyUsedLeavesFirstAndWhatIsInUseStays) {
  PrefixCache cache(3 * kPage, pages());
  for (TokenId id = 1; id <= 3; ++id) ASSERT_TRUE(cache.store(Ids{id}, sequence_of({id})));
  EXPECT_EQ(cache.bytes(), 3 * kPage);
  auto held = cache.take(Ids{1});
  ASSERT_TRUE(cache.store(Ids{4}, sequence_of({4})));  // 2 leaves
  EXPECT_EQ(cache.find(Ids{2}), 0u);
  EXPECT_EQ(cache.find(Ids{1}), 1u);
  EXPECT_TRUE(cache.evict());
  EXPECT_TRUE(cache.evict());
  EXPECT_FALSE(cache.evict());  // 1 is in use
  held = {};
  EXPECT_TRUE(cache.evict());
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_EQ(cache.snapshots(), 0u);
}

TEST(PrefixCache, SharedPagesCountOnce) {
  PrefixCache cache(100 * kPage, pages());
  const Ids stem = numbers(0, 3 * kPage + 10);
  ASSERT_TRUE(cache.store(stem, sequence_of(stem)));
  EXPECT_EQ(cache.bytes(), 4 * kPage);
  const Ids leaf = joined(stem, {99999});
  ASSERT_TRUE(cache.store(leaf, sequence_of(leaf)));
  EXPECT_EQ(cache.bytes(), 5 * kPage);  // the page that both have begun is each one's own
  EXPECT_EQ(cache.own_bytes(leaf.size(), stem.size()), kPage);
}

TEST(PrefixCache, RefusesWhatDoesNotFit) {
  PrefixCache cache(kPage, pages());
  const Ids large = numbers(0, kPage + 1);
  EXPECT_FALSE(cache.store(large, sequence_of(large)));
  EXPECT_TRUE(cache.store(Ids{1}, sequence_of({1})));
  EXPECT_FALSE(cache.store(Ids{1}, sequence_of({1})));  // is there already
  PrefixCache off(0, pages());
  EXPECT_FALSE(off.store(Ids{1}, sequence_of({1})));
  off.announce(Ids{1});
  off.withdraw(Ids{1});
}

TEST(PrefixCache, ALongChainOfPromptsIsNoDeepRecursion) {
  PrefixCache cache(std::uint64_t{1} << 40, pages());
  const Ids all = numbers(0, 4000);
  for (std::size_t n = 1; n <= all.size(); ++n) cache.announce(std::span(all).first(n));
  EXPECT_NE(cache.next_mark(all, 0), 0u);
}

TEST(PrefixCache, RandomLifeAgainstAPlainList) {
  std::mt19937 random(7);
  const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  PrefixCache cache(40 * kPage, pages());
  std::vector<Ids> announced, kept;
  for (int round = 0; round < 20000; ++round) {
    Ids ids(1 + pick(12));
    for (auto& id : ids) id = static_cast<TokenId>(pick(3));
    switch (pick(4)) {
      case 0:
        cache.announce(ids);
        announced.push_back(ids);
        break;
      case 1:
        if (announced.empty()) break;
        std::swap(announced[pick(announced.size())], announced.back());
        cache.withdraw(announced.back());
        announced.pop_back();
        break;
      case 2:
        if (cache.store(ids, sequence_of(ids))) kept.push_back(ids);
        break;
      default: {
        const auto match = cache.take(ids);
        const Ids tokens = tokens_of(match);
        // What comes is a beginning of what was asked, the longest that was ever kept or was thrown out since.
        ASSERT_LE(tokens.size(), ids.size());
        ASSERT_TRUE(std::equal(tokens.begin(), tokens.end(), ids.begin()));
        ASSERT_EQ(tokens.size(), cache.find(ids));
        std::size_t longest = 0;
        for (const auto& other : kept) {
          const auto length = std::min(other.size(), ids.size());
          longest = std::max(
              longest, static_cast<std::size_t>(
                           std::mismatch(other.begin(), other.begin() + static_cast<long>(length), ids.begin()).first -
                           other.begin()));
        }
        ASSERT_LE(tokens.size(), longest);
      }
    }
    ASSERT_LE(cache.bytes(), 40 * kPage);
    ASSERT_LE(cache.snapshots(), 40u);
  }
  for (const auto& ids : announced) cache.withdraw(ids);
  while (cache.evict()) {
  }
  EXPECT_EQ(cache.bytes(), 0u);
}

}  // namespace
}  // namespace hk::engine
