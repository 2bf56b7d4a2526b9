// Markdown for terminals: the same output however the text is cut, marks that are none, and no colour left on.
#include "cli/chat/markdown.h"

#include <gtest/gtest.h>

#include <random>

namespace hk::test {
namespace {

std::string render(const std::string& text, std::size_t step) {
  cli::MarkdownRenderer renderer;
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += step) out += renderer.push(text.substr(at, step));
  return out + renderer.finish();
}

/// Colours as readable marks.
std::string readable(std::string text) {
  for (const auto& [code, mark] :
       {std::pair{"\x1b[0m", "{/}"}, {"\x1b[1m", "{b}"}, {"\x1b[2m", "{d}"}, {"\x1b[36m", "{c}"}})
    for (auto at = text.find(code); at != std::string::npos; at = text.find(code))
      text.replace(at, std::string(code).size(), mark);
  return text;
}

void expect(const std::string& text, const std::string& wanted) {
  for (std::size_t step = 1; step <= text.size(); ++step) EXPECT_EQ(readable(render(text, step)), wanted) << step;
}

TEST(Markdown, Marks) {
  expect("plain text\n", "plain text\n");
  expect("a **bold** word", "a {b}bold{/} word");
  expect("# Title\ntext", "{b}Title{/}\ntext");
  expect("### Third\n", "{b}Third{/}\n");
  expect("- one\n* two\n+ three\n  - four\n", "• one\n• two\n• three\n  • four\n");
  expect("1. first\n", "1. first\n");
  expect("use `ls -l` here", "use {c}`ls -l`{/} here");
  expect("**bold `code` bold**", "{b}bold {c}`code`{/}{b} bold{/}");
  expect("```py\nx = **2\n# no title\n```\nafter", "{/}{d}```py{/}{c}\nx = **2\n# no title\n{/}{d}```{/}\nafter");
}

TEST(Markdown, WhatOnlyLooksLikeAMark) {
  expect("2 * 3 ** 4\n", "2 * 3 ** 4\n");
  expect("#hashtag\n", "#hashtag\n");
  expect("-5 degrees\n", "-5 degrees\n");
  expect("*", "*");
  expect("a\n\n\nb", "a\n\n\nb");
  expect("####### seven\n", "####### seven\n");
  expect("``two``\n", "{c}``{/}two{c}``{/}\n");  // a span of code that holds nothing
}

TEST(Markdown, NothingStaysOnBeyondItsLineOrTheAnswer) {
  expect("**open\nnext", "{b}open{/}\nnext");
  expect("`open\nnext", "{c}`open{/}\nnext");
  expect("```\nnever closed", "{/}{d}```{/}{c}\nnever closed{/}");
}

TEST(Markdown, RandomTextEndsPlainAndDoesNotDependOnCuts) {
  std::mt19937 random(3);
  const std::string alphabet = "*`#-+ \nab~";
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (std::size_t i = 0; i < 40; ++i) text += alphabet[random() % alphabet.size()];
    const auto whole = render(text, text.size());
    EXPECT_EQ(render(text, 1), whole) << text;
    EXPECT_EQ(render(text, 3), whole) << text;
    const auto last = whole.rfind('\x1b');
    if (last != std::string::npos) EXPECT_EQ(whole.substr(last, 4), "\x1b[0m") << text;
  }
}

}  // namespace
}  // namespace hk::test
