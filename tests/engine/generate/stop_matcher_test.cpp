// Stop strings: the result must not depend on how the text is cut, and nothing of a stop string may be shown.
#include "engine/generate/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace hk::engine {
namespace {

std::string in_pieces(StopMatcher& matcher, std::string_view text, std::size_t piece) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += piece) out += matcher.push(text.substr(i, piece));
  return out;
}

TEST(StopMatcher, CutsBeforeTheStopString) {
  for (const std::size_t piece : {1, 2, 3, 5, 100}) {
    StopMatcher matcher({"User:", "###"});
    EXPECT_EQ(in_pieces(matcher, "Hello Us\nUser: more", piece), "Hello Us\n") << piece;
    EXPECT_TRUE(matcher.found());
    EXPECT_EQ(matcher.stop(), "User:");
    EXPECT_EQ(matcher.push("later"), "");
    EXPECT_EQ(matcher.finish(), "");
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatMayBecomeOne) {
  StopMatcher matcher({"<end>"});
  EXPECT_EQ(matcher.push("a<b"), "a<b");
  EXPECT_EQ(matcher.push("c<en"), "c");
  EXPECT_EQ(matcher.push("t<"), "<ent");
  EXPECT_EQ(matcher.push("end"), "");
  EXPECT_FALSE(matcher.found());
  EXPECT_EQ(matcher.finish(), "<end");
}

TEST(StopMatcher, OverlappingBeginnings) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.push("aaa"), "a");
  EXPECT_EQ(matcher.push("ab"), "a");
  EXPECT_TRUE(matcher.found());
}

TEST(StopMatcher, NoStopsAndEmptyStops) {
  StopMatcher none({});
  EXPECT_EQ(none.push("text"), "text");
  StopMatcher empty({""});
  EXPECT_EQ(empty.push("text"), "text");
  EXPECT_FALSE(empty.found());
  EXPECT_EQ(empty.push(""), "");
}

TEST(StopMatcher, AnyCutGivesTheSame) {
  std::mt19937 engine(5);
  const auto random_text = [&](std::size_t n) {
    std::string text(n, 'a');
    for (auto& c : text) c = static_cast<char>('a' + engine() % 2);
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> stops;
    for (auto i = engine() % 3; i < 3; ++i) stops.push_back(random_text(1 + engine() % 5));
    const std::string text = random_text(engine() % 25);
    // Definition, byte by byte: the first moment at which the text so far ends with a stop string; the longest one of
    // those.
    std::size_t cut = text.size();
    bool found = false;
    for (std::size_t end = 1; end <= text.size() && !found; ++end)
      for (const auto& stop : stops)
        if (std::string_view(text).substr(0, end).ends_with(stop)) {
          cut = std::min(cut, end - stop.size());
          found = true;
        }
    for (std::size_t piece = 1; piece < 6; ++piece) {
      StopMatcher matcher(stops);
      std::string out = in_pieces(matcher, text, piece);
      out += matcher.finish();
      ASSERT_EQ(matcher.found(), found);
      ASSERT_EQ(out, text.substr(0, cut)) << text << " piece " << piece;
    }
  }
}

}  // namespace
}  // namespace hk::engine
