// Reasoning taken apart from answers, for every way the text may be cut; and what templates want to know of it.
#include "cli/chat/thinking.h"

#include <gtest/gtest.h>

#include "tests/support/fixtures.h"

namespace hk::test {
namespace {

using cli::EarlierReasoning;
using cli::ThinkFormat;
using cli::ThinkSplitter;

constexpr ThinkFormat kThink{"<think>", "</think>", "", "</think>"};
constexpr ThinkFormat kChannels{"<|channel|>analysis<|message|>",
                                "<|end|><|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>",
                                "<|channel|>analysis"};

struct Split {
  std::string reasoning, answer;
  bool operator==(const Split&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Split& split) {
  return out << "{'" << split.reasoning << "', '" << split.answer << "'}";
}

Split split(const ThinkFormat* format, const std::string& text, std::size_t step, bool inside = false) {
  ThinkSplitter splitter(format, inside);
  Split out;
  const auto take = [&](const std::vector<ThinkSplitter::Piece>& pieces) {
    for (const auto& piece : pieces) (piece.reasoning ? out.reasoning : out.answer) += piece.text;
  };
  for (std::size_t at = 0; at < text.size(); at += step) take(splitter.push(text.substr(at, step)));
  take(splitter.finish());
  return out;
}

void expect(const ThinkFormat* format, const std::string& text, const Split& wanted, bool inside = false) {
  for (std::size_t step = 1; step <= text.size() + 1; ++step)
    EXPECT_EQ(split(format, text, step, inside), wanted) << step;
}

TEST(ThinkSplitter, EveryCut) {
  expect(&kThink, "<think>\nLet me see.\n\nYes.\n</think>\n\nIt is 4.\n", {"Let me see.\n\nYes.", "It is 4.\n"});
  expect(&kThink, "\n<think></think>4", {"", "4"});
  expect(&kThink, "It is <think> 4 </think>", {"", "It is <think> 4 </think>"});
  expect(&kThink, "<thin", {"", "<thin"});
  expect(&kThink, "<think>never closed </thin", {"never closed </thin", ""});
  expect(&kThink, "<think>a < b </ think></think>c", {"a < b </ think>", "c"});
  expect(&kThink, "  leading", {"", "  leading"});
  expect(&kThink, "", {"", ""});
  expect(nullptr, "<think>x</think>y", {"", "<think>x</think>y"});
  expect(&kThink, "inside already\n</think>\n\nAnswer", {"inside already", "Answer"}, true);
  expect(&kChannels, "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hi!",
         {"Hm.", "Hi!"});
  expect(&kChannels, "<|channel|>final<|message|>Hi!", {"", "Hi!"});
}

TEST(ThinkSplitter, TextIsNotHeldBackLongerThanNeeded) {
  ThinkSplitter splitter(&kThink, false);
  EXPECT_TRUE(splitter.push("<th").empty());
  const auto pieces = splitter.push("e answer");
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].text, "<the answer");
}

tokenizer::ChatTemplate fixture_template(const std::string& name) {
  const auto path = find_data("fixtures/chat/templates/" + name + ".jinja");
  const auto bytes = read_file(path);
  return tokenizer::ChatTemplate::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name);
}

TEST(ThinkTemplates, SwitchesAndHistory) {
  HK_FIXTURE(any, "fixtures/chat/templates/qwen3-0.6b.jinja");
  const auto switches = [](const std::string& name) { return cli::think_switches(fixture_template(name)); };
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(switches("qwen3-0.6b"), Names{"enable_thinking"});
  EXPECT_EQ(switches("smollm3-3b"), Names{"enable_thinking"});
  EXPECT_EQ(switches("glm-4.6"), Names{"enable_thinking"});
  EXPECT_EQ(switches("nemotron-3-nano-30b-a3b"), Names{"enable_thinking"});
  EXPECT_EQ(switches("deepseek-v3.1"), (Names{"enable_thinking", "thinking"}));
  EXPECT_EQ(switches("granite-3.3-2b-instruct"), Names{"thinking"});
  for (const char* name : {"llama-3-8b-instruct", "qwq-32b", "gpt-oss-120b", "chatml"})
    EXPECT_EQ(switches(name), Names{}) << name;
  const auto earlier = [](const std::string& name, const ThinkFormat& format) {
    return cli::earlier_reasoning(fixture_template(name), &format);
  };
  EXPECT_EQ(earlier("qwen3-0.6b", kThink), EarlierReasoning::kField);
  EXPECT_EQ(earlier("qwq-32b", kThink), EarlierReasoning::kContent);
  EXPECT_EQ(earlier("deepseek-r1-distill-qwen-7b", kThink), EarlierReasoning::kContent);
  EXPECT_EQ(earlier("smollm3-3b", kThink), EarlierReasoning::kDropped);
  EXPECT_EQ(earlier("gpt-oss-120b", kChannels), EarlierReasoning::kThinking);
  EXPECT_EQ(cli::earlier_reasoning(fixture_template("chatml"), nullptr), EarlierReasoning::kDropped);
}

TEST(ThinkTemplates, OpenReasoning) {
  EXPECT_TRUE(cli::ends_in_open_reasoning(kThink, "...<|Assistant|><think>\n"));
  EXPECT_FALSE(cli::ends_in_open_reasoning(kThink, "...<think>\n\n</think>\n\n"));
  EXPECT_FALSE(cli::ends_in_open_reasoning(kThink, ""));
}

}  // namespace
}  // namespace hk::test
