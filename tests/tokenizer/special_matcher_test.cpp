// Cutting at special texts: leftmost, then longest, compared with the obvious search; and in linear time.
#include "tokenizer/special_matcher.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace hk::tokenizer {
namespace {

struct Cut {
  std::size_t position;
  std::size_t length;
  TokenId id;
  bool operator==(const Cut&) const = default;
};

std::vector<Cut> cut(const SpecialMatcher& matcher, std::string_view text, bool parse_special) {
  std::vector<SpecialMatcher::Hit> hits;
  matcher.scan(text, parse_special, hits);
  std::vector<Cut> cuts;
  std::size_t at = 0;
  for (std::size_t i = hits.size(); i-- > 0;) {
    if (hits[i].position < at) continue;
    cuts.push_back({hits[i].position, hits[i].length, hits[i].id});
    at = hits[i].position + hits[i].length;
  }
  return cuts;
}

struct Special {
  std::string text;
  bool always;
};

std::vector<Cut> obvious_cut(const std::vector<Special>& specials, std::string_view text, bool parse_special) {
  std::vector<Cut> cuts;
  for (std::size_t at = 0; at < text.size();) {
    Cut best{at, 0, -1};
    for (std::size_t i = 0; i < specials.size(); ++i) {
      const Special& s = specials[i];
      if ((s.always || parse_special) && s.text.size() > best.length && text.substr(at, s.text.size()) == s.text)
        best = {at, s.text.size(), static_cast<TokenId>(i)};
    }
    if (best.length != 0) cuts.push_back(best);
    at += best.length == 0 ? 1 : best.length;
  }
  return cuts;
}

TEST(SpecialMatcher, EqualsTheObviousSearch) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    std::vector<Special> specials;
    SpecialMatcher matcher;
    const auto word = [&](std::size_t longest) {
      std::string text;
      for (std::size_t n = random() % (longest + 1); n-- > 0;) text += static_cast<char>("ab<|"[random() % 4]);
      return text;
    };
    for (std::size_t n = random() % 12; n-- > 0;) {
      specials.push_back({word(6), random() % 2 == 0});
      matcher.add(specials.back().text, static_cast<TokenId>(specials.size() - 1), specials.back().always);
    }
    matcher.finish();
    for (int k = 0; k < 20; ++k) {
      const std::string text = word(60);
      for (const bool parse_special : {false, true})
        EXPECT_EQ(cut(matcher, text, parse_special).size(), obvious_cut(specials, text, parse_special).size()) << text;
      EXPECT_EQ(cut(matcher, text, true), obvious_cut(specials, text, true)) << text;
      EXPECT_EQ(cut(matcher, text, false), obvious_cut(specials, text, false)) << text;
    }
  }
}

TEST(SpecialMatcher, KnowsNothingWithoutTexts) {
  SpecialMatcher matcher;
  matcher.add("", 3, true);  // an empty text is never found
  matcher.finish();
  EXPECT_TRUE(cut(matcher, "anything", true).empty());
  EXPECT_TRUE(cut(matcher, "", true).empty());
}

TEST(SpecialMatcher, TakesAnyByte) {
  SpecialMatcher matcher;
  matcher.add(std::string_view("\0\xFF", 2), 1, true);
  matcher.finish();
  const std::string_view text("x\0\xFF\0", 4);
  EXPECT_EQ(cut(matcher, text, false), (std::vector<Cut>{{1, 2, 1}}));
}

// One token of half a megabyte that never matches would cost hours with a search that starts over at every position.
TEST(SpecialMatcher, LongTokensDoNotMakeItQuadratic) {
  SpecialMatcher matcher;
  matcher.add(std::string(1 << 19, 'a') + "b", 1, true);
  matcher.add("a", 2, true);
  matcher.finish();
  EXPECT_EQ(cut(matcher, std::string(1 << 20, 'a'), true).size(), std::size_t{1} << 20);
  EXPECT_EQ(cut(matcher, std::string(1 << 20, 'a') + "b", true).size(), (std::size_t{1} << 19) + 1);
}

}  // namespace
}  // namespace hk::tokenizer
