// The merge loop against the definition, and the number of rule look-ups it needs.
#include "tokenizer/merge_list.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace hk::tokenizer {
namespace {

using Rules = std::map<std::pair<TokenId, TokenId>, MergeRule>;

std::vector<TokenId> merged(const std::vector<TokenId>& ids, const Rules& rules, std::size_t* lookups = nullptr) {
  MergeList list;
  for (std::size_t i = 0; i < ids.size(); ++i) list.add(static_cast<std::uint32_t>(i), 1, ids[i]);
  list.merge([&](const Symbol& left, const Symbol& right) {
    if (lookups != nullptr) ++*lookups;
    EXPECT_EQ(left.begin + left.length, right.begin);
    const auto found = rules.find({left.id, right.id});
    return found == rules.end() ? MergeRule{} : found->second;
  });
  std::vector<TokenId> out;
  std::uint32_t covered = 0;
  list.for_each([&](const Symbol& symbol) {
    EXPECT_EQ(symbol.begin, covered);
    covered += symbol.length;
    out.push_back(symbol.id);
  });
  EXPECT_EQ(covered, ids.size());
  return out;
}

std::vector<TokenId> merged_by_definition(std::vector<TokenId> ids, const Rules& rules) {
  for (;;) {
    std::size_t best = ids.size();
    MergeRule rule;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = rules.find({ids[i], ids[i + 1]});
      if (found != rules.end() && found->second.priority < rule.priority) {
        rule = found->second;
        best = i;
      }
    }
    if (best == ids.size()) return ids;
    ids[best] = rule.result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(MergeList, EqualsTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    Rules rules;
    TokenId next = 4;
    for (std::uint32_t i = 0; i < 40; ++i) {
      const auto left = static_cast<TokenId>(random() % static_cast<unsigned>(next));
      const auto right = static_cast<TokenId>(random() % static_cast<unsigned>(next));
      const std::uint32_t priority =
          round % 2 == 0 ? i : static_cast<std::uint32_t>(random() % 6);  // with and without ties
      if (rules.emplace(std::pair{left, right}, MergeRule{priority, next}).second) ++next;
    }
    for (const std::size_t length : {0, 1, 2, 3, 31, 32, 33, 64, 200}) {  // around the change from scan to heap
      std::vector<TokenId> ids(length);
      for (TokenId& id : ids) id = static_cast<TokenId>(random() % 4);
      EXPECT_EQ(merged(ids, rules), merged_by_definition(ids, rules)) << "length " << length;
    }
  }
}

TEST(MergeList, LooksUpALinearNumberOfPairs) {
  Rules rules;
  for (TokenId id = 0; id < 20; ++id) rules[{id, id}] = {static_cast<std::uint32_t>(id), id + 1};
  std::size_t lookups = 0;
  const std::size_t length = std::size_t{1} << 18;
  EXPECT_EQ(merged(std::vector<TokenId>(length, 0), rules, &lookups), (std::vector<TokenId>{18}));
  EXPECT_LE(lookups, 3 * length);
}

}  // namespace
}  // namespace hk::tokenizer
