// Pre-tokenizers: every split case of the fixtures, the hand-written stages against their expressions, refusals.
#include "tokenizer/splitter.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "tests/support/fixtures.h"
#include "tokenizer/regex_spelling.h"

namespace hk::tokenizer {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(const Splitter& splitter, std::string_view text) {
  SplitScratch scratch;
  Pieces pieces;
  splitter.split(text, scratch, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

Pieces split(std::vector<Stage> stages, std::string_view text) { return split(Splitter(stages, true, "test"), text); }

Splitter named(std::string_view name) { return Splitter(find_pre_tokenizer(name)->stages, false, name); }

TEST(Splitter, GivesThePiecesOfTheFixtures) {
  HK_FIXTURE(path, "fixtures/tokenizers/pretok.jsonl");
  std::map<std::string, Splitter> splitters;
  std::ifstream in(path);
  std::size_t compared = 0, wrong = 0;
  for (std::string line; std::getline(in, line);) {
    const auto entry = nlohmann::json::parse(line);
    const std::string pre = entry["pre"];
    auto found = splitters.find(pre);
    if (found == splitters.end()) found = splitters.emplace(pre, named(pre)).first;
    const Pieces pieces = split(found->second, entry["text"].get<std::string>());
    ++compared;
    if (pieces == entry["pieces"].get<Pieces>()) continue;
    // Characters younger than the tables of the expression library.
    if (entry.contains("pcre2_10_42") && pieces == entry["pcre2_10_42"].get<Pieces>()) continue;
    if (++wrong <= 20)
      ADD_FAILURE() << line.substr(0, 500) << "\n got " << nlohmann::json(pieces).dump().substr(0, 500);
  }
  EXPECT_EQ(wrong, 0U);
  EXPECT_GE(compared, 5000U);
}

TEST(Splitter, LosesNothing) {
  const std::string text =
      "It's 12345678 o'clock\t\t\n\n  \r\n «Ünï» 你好，世界。 กขค 한국어 x²+½ \xF0\x9F\x98\x80!!  e\xCC\x81 IMGIMGABZ "
      "<sentinel:12>   ";
  for (const std::string_view name : pre_tokenizer_names()) {
    const Splitter splitter = named(name);
    for (std::size_t from = 0; from <= text.size(); ++from) {
      const std::string_view rest = std::string_view(text).substr(from);
      if (!rest.empty() && (static_cast<unsigned char>(rest[0]) & 0xC0) == 0x80) continue;
      std::string joined;
      for (const auto& piece : split(splitter, rest)) {
        EXPECT_FALSE(piece.empty()) << name;
        joined += piece;
      }
      EXPECT_EQ(joined, rest) << name;
    }
  }
}

// The equivalents of the table against the expressions they stand for.
TEST(Splitter, EquivalentsSplitAsTheirExpressions) {
  static constexpr const char* kExpressions[] = {
      R"re(\s+$)re",
      R"re((?=(\d{3})+(?!\d)))re",
      R"re(\d{1,3}(?=(?:\d{3})*\b))re",
      R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)re",
      R"re(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{sc:Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{sc:Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re",
      R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})re"};
  static constexpr const char* kParts[] = {" ",
                                           "1",
                                           "22",
                                           "333",
                                           "\n",
                                           "a",
                                           "_",
                                           "\t",
                                           "\r",
                                           ".",
                                           "\xC2\xB2",
                                           "\xD9\xA3",
                                           "\xC3\xA9",
                                           "  ",
                                           "A",
                                           "'s",
                                           "12345678",
                                           "\xE3\x80\x80",
                                           "\xE4\xBD\xA0",
                                           "\xE3\x80\x87",
                                           "zz",
                                           "\xF0\x96\xBF\xA2",
                                           "\xE3\x80\x85",
                                           "\xE0\xB8\x81",
                                           "\xCC\x81",
                                           "         ",
                                           "\xC2\xA0",
                                           "\xE2\x80\xA8",
                                           "/"};
  std::mt19937 random(11);
  for (const char* expression : kExpressions) {
    std::vector<Stage> equivalent;
    append_stages(expression, equivalent);
    ASSERT_TRUE(equivalent.size() != 1 || equivalent[0].expression != expression) << "not in the table: " << expression;
    // An empty group changes nothing but keeps the table from recognising the expression.
    const std::string disguised = "(?:)(?:" + std::string(expression) + ")";
    const Splitter ours(equivalent, false, "ours"),
        original(std::vector<Stage>{{.expression = disguised}}, true, "original");
    for (int round = 0; round < 20000; ++round) {
      std::string text;
      for (std::size_t n = random() % 12; n-- > 0;) text += kParts[random() % std::size(kParts)];
      // In the original a mark is no part of a word boundary (see below).
      if (equivalent[0].kind == StageKind::kBoundaryDigitGroups && text.find("\xCC\x81") != std::string::npos) continue;
      ASSERT_EQ(split(ours, text), split(original, text)) << expression << " on '" << text << "'";
    }
  }
}

// Digits before a combining mark do not end at a word boundary, other than PCRE2 has it.
TEST(Splitter, MarksBelongToWords) {
  EXPECT_EQ(split({{.kind = StageKind::kBoundaryDigitGroups}}, "1234\xCC\x81 1234"),
            (Pieces{"1234\xCC\x81 ", "1", "234"}));
}

TEST(Splitter, LadderOfBlanks) {
  const Splitter splitter = named("jais-2");
  const auto sizes = [&](std::string_view text) {
    std::vector<std::size_t> out;
    for (const auto& piece : split(splitter, text)) out.push_back(piece.size());
    return out;
  };
  EXPECT_EQ(sizes(std::string(1000, ' ') + "x"), (std::vector<std::size_t>{512, 256, 128, 64, 32, 4, 2, 1, 2}));
  EXPECT_EQ(sizes(std::string(3, ' ')), (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(sizes("  \n  1"), (std::vector<std::size_t>{3, 1, 1, 1}));
  EXPECT_EQ(sizes("a\n\n\n\n\n"), (std::vector<std::size_t>{1, 5}));
}

TEST(Splitter, NumbersFromTheRight) {
  EXPECT_EQ(split(named("afmoe"), "a 1234567 12"), (Pieces{"a", " ", "1", "234", "567", " ", "12"}));
  EXPECT_EQ(split(named("afmoe"), "123"), (Pieces{"123"}));
}

TEST(Splitter, EmptyMatchesAreCuts) {
  EXPECT_EQ(split({{.expression = "(?=b)"}}, "abcb"), (Pieces{"a", "bc", "b"}));
  EXPECT_EQ(split({{.expression = "x*"}}, "axb"), (Pieces{"a", "x", "b"}));
  EXPECT_EQ(split({{.expression = ""}}, "a\xC3\xA9"), (Pieces{"a", "\xC3\xA9"}));
  EXPECT_EQ(split(std::vector<Stage>{}, "a b"), (Pieces{"a b"}));
  EXPECT_EQ(split(named("gpt-2"), ""), Pieces{});
}

TEST(Splitter, RefusesExpressions) {
  EXPECT_THROW(split({{.expression = "(unclosed"}}, "a"), Error);
  EXPECT_THROW(split({{.expression = "\\C"}}, "a"), Error);
  try {
    split({{.expression = "[z-a]"}}, "a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[z-a]"), std::string::npos) << error.what();
  }
  // Exponential in any backtracking engine: stopped, not waited for.
  EXPECT_THROW(split({{.expression = "(?:a|aa)+$"}}, std::string(60, 'a') + "b"), Error);
}

TEST(RegexSpelling, ChangesOnlyWhatDiffers) {
  EXPECT_EQ(pcre2_spelling(R"re(\p{Han}+|[\p{^Latin}x]\P{Thai}\p{Lu})re"),
            R"re(\p{sc:Han}+|[\p{^sc:Latin}x]\P{sc:Thai}\p{Lu})re");
  EXPECT_EQ(pcre2_spelling(R"re([\p{Lu}\p{M}&&[^\p{Han}]]+)re"), R"re((?:(?=[^\p{sc:Han}])[\p{Lu}\p{M}])+)re");
  EXPECT_EQ(pcre2_spelling(R"re(\u4e00[]\]x[:alpha:]]\\s)re"), R"re(\x{4e00}[]\]x[:alpha:]]\\s)re");
  EXPECT_EQ(pcre2_spelling("\\"), "\\");
  EXPECT_EQ(pcre2_spelling("[a"), "[a");
  // U+180E is white space to the library, but not to Unicode.
  EXPECT_EQ(split({{.expression = R"re(\s+)re"}}, "\xE1\xA0\x8E a"), (Pieces{"\xE1\xA0\x8E", " ", "a"}));
  EXPECT_EQ(split({{.expression = R"re([^\s]+)re"}}, "b\xE1\xA0\x8E a"), (Pieces{"b\xE1\xA0\x8E", " ", "a"}));
}

TEST(PreTokenizers, AllCompileAndUnknownOnesAreNull) {
  for (const std::string_view name : pre_tokenizer_names()) EXPECT_NO_THROW(named(name)) << name;
  EXPECT_EQ(find_pre_tokenizer("no-such-pre"), nullptr);
  EXPECT_EQ(find_pre_tokenizer(""), nullptr);
}

}  // namespace
}  // namespace hk::tokenizer
