// hk-run tokenize and detokenize: outputs, JSON lines, wrong lines, exit codes.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/support/run_program.h"

namespace hk::cli {
namespace {

using nlohmann::json;
using test::hk_run;

test::Outcome run_with_input(std::vector<std::string> arguments, std::string input) {
  test::RunOptions options;
  options.input = std::move(input);
  return hk_run(std::move(arguments), options);
}

/// A file with nothing but a small vocabulary: <unk> <s> </s> U+2581 a b ab <0xFF>.
class TokenizeCommand : public testing::Test {
 protected:
  TokenizeCommand() {
    test::GgufBuilder file;
    file.text("general.architecture", "llama").text("tokenizer.ggml.model", "llama");
    file.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "<0xFF>"});
    file.array<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -3, -3, -3, -1, 0});
    file.array<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 1, 1, 1, 1, 6});
    path_ = folder_.write("vocab.gguf", file.build()).string();
  }

  std::vector<json> lines(std::vector<std::string> arguments, const std::string& input, int exit_code) {
    const auto outcome = run_with_input(std::move(arguments), input);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    std::vector<json> answers;
    std::istringstream in(outcome.out);
    for (std::string line; std::getline(in, line);) answers.push_back(json::parse(line));
    return answers;
  }

  test::TemporaryFolder folder_;
  std::string path_;
};

TEST_F(TokenizeCommand, ListsIdsAndPieces) {
  EXPECT_EQ(hk_run({"tokenize", path_, "ab"}).out, "1\t<s>\n3\t \n6\tab\n");
  EXPECT_EQ(hk_run({"tokenize", path_, "ab", "--no-special"}).out, "3\t \n6\tab\n");
  EXPECT_EQ(hk_run({"tokenize", path_, ""}).out, "1\t<s>\n");
  EXPECT_EQ(run_with_input({"tokenize", path_}, "ab").out, "1\t<s>\n3\t \n6\tab\n");
  const std::string text = "a</s>";
  const auto file = folder_.write("text", std::as_bytes(std::span(text))).string();
  EXPECT_EQ(json::parse(hk_run({"tokenize", path_, "-f", file, "--json", "--parse-special"}).out),
            json::parse(R"({"ids": [1, 3, 4, 2], "pieces": ["<s>", " ", "a", "</s>"]})"));
}

TEST_F(TokenizeCommand, AnswersJsonLines) {
  const std::string input =
      "{\"text\": \"ab\"}\n"
      "\n"
      "{\"text\": \"</s>\", \"add_special\": false, \"parse_special\": true, \"cat\": \"ignored\"}\n"
      "{\"text_b64\": \"/w==\", \"add_special\": false}\n";
  EXPECT_EQ(lines({"tokenize", path_, "--jsonl"}, input, 0),
            (std::vector<json>{{{"ids", {1, 3, 6}}}, {{"ids", {2}}}, {{"ids", {3, 7}}}}));
  EXPECT_EQ(lines({"tokenize", path_, "--jsonl", "--no-special"}, "{\"text\": \"ab\"}", 0),
            (std::vector<json>{{{"ids", {3, 6}}}}));
}

TEST_F(TokenizeCommand, BadLinesDoNotStopTheRun) {
  const char* bad[] = {"nonsense",
                       "[1]",
                       "{}",
                       "{\"text\": 1}",
                       "{\"text\": \"a\", \"text_b64\": \"\"}",
                       "{\"text_b64\": \"*\"}",
                       "{\"text\": \"a\", \"add_special\": 1}",
                       "{\"text\": \"\xFF\"}"};
  std::string input;
  for (const char* line : bad) input += std::string(line) + "\n";
  const auto answers = lines({"tokenize", path_, "--jsonl"}, input + "{\"text\": \"a\"}\n", 1);
  ASSERT_EQ(answers.size(), std::size(bad) + 1);
  for (std::size_t i = 0; i < std::size(bad); ++i) {
    ASSERT_TRUE(answers[i].contains("error")) << bad[i];
    EXPECT_TRUE(answers[i]["error"].get<std::string>().starts_with("line " + std::to_string(i + 1) + ": "));
  }
  EXPECT_EQ(answers.back(), (json{{"ids", {1, 3, 4}}}));
}

TEST_F(TokenizeCommand, Detokenizes) {
  EXPECT_EQ(hk_run({"detokenize", path_, "1", "3", "6"}).out, "<s> ab");
  EXPECT_EQ(hk_run({"detokenize", path_, "1", "3", "6", "--skip-special"}).out, "ab");
  EXPECT_EQ(run_with_input({"detokenize", path_}, "[3, 6,\n4]").out, "aba");
  EXPECT_EQ(run_with_input({"detokenize", path_}, "").out, "");
  EXPECT_EQ(json::parse(hk_run({"detokenize", path_, "7", "--json"}).out), (json{{"text_b64", "/w=="}}));
  EXPECT_EQ(json::parse(hk_run({"detokenize", path_, "6", "--json"}).out), (json{{"text", "ab"}}));
}

TEST_F(TokenizeCommand, DetokenizesJsonLines) {
  const std::string input =
      "{\"ids\": [1, 3, 6], \"skip_special\": true}\n{\"ids\": [3], \"piece\": true}\n{\"ids\": [7]}\n{\"ids\": []}\n";
  EXPECT_EQ(lines({"detokenize", path_, "--jsonl"}, input, 0),
            (std::vector<json>{{{"text", "ab"}}, {{"text", " "}}, {{"text_b64", "/w=="}}, {{"text", ""}}}));
  const auto wrong =
      lines({"detokenize", path_, "--jsonl"},
            "{\"ids\": [8]}\n{\"ids\": [-1]}\n{\"ids\": [1.5]}\n{\"ids\": [18446744073709551615]}\n{\"ids\": 1}\n"
            "{\"ids\": [1, 2], \"piece\": true}\n{\"ids\": [6]}",
            1);
  ASSERT_EQ(wrong.size(), 7U);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_TRUE(wrong[i].contains("error")) << i;
  EXPECT_EQ(wrong[6], (json{{"text", "ab"}}));
}

TEST_F(TokenizeCommand, Refuses) {
  EXPECT_EQ(hk_run({"detokenize", path_, "8"}).exit_code, 1);
  EXPECT_EQ(hk_run({"detokenize", path_, "x"}).exit_code, 1);
  EXPECT_EQ(hk_run({"tokenize", path_, "-f", (folder_.path() / "absent").string()}).exit_code, 1);
  EXPECT_EQ(hk_run({"tokenize", path_, "a", "--jsonl"}).exit_code, 2);
  EXPECT_EQ(hk_run({"tokenize", (folder_.path() / "absent.gguf").string(), "a"}).exit_code, 1);
}

}  // namespace
}  // namespace hk::cli
