// hk-run template: sources of templates, variables, JSON lines, errors.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tests/support/run_program.h"

namespace hk::cli {
namespace {

using nlohmann::json;
using test::hk_run;

class TemplateCommand : public testing::Test {
 protected:
  TemplateCommand() {
    messages_ = write("messages.json", R"([{"role": "user", "content": "Hi é"}])");
    model_ = model("model.gguf", "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ unk_token is defined }}");
  }

  std::string write(const std::string& name, const std::string& text) {
    return folder_.write(name, std::as_bytes(std::span(text))).string();
  }

  std::string model(const std::string& name, const std::string& chat_template) {
    test::GgufBuilder file;
    file.text("general.architecture", "llama").text("tokenizer.ggml.model", "llama");
    if (!chat_template.empty()) file.text("tokenizer.chat_template", chat_template);
    file.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "▁"});
    file.array<float>("tokenizer.ggml.scores", 6, {0, 0, 0, -3});
    file.array<std::int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 1});
    file.u32("tokenizer.ggml.bos_token_id", 1);
    file.u32("tokenizer.ggml.eos_token_id", 2);
    return folder_.write(name, file.build()).string();
  }

  std::vector<json> lines(std::vector<std::string> arguments, const std::string& input, int exit_code) {
    test::RunOptions options;
    options.input = input;
    const auto outcome = hk_run(std::move(arguments), options);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    std::vector<json> answers;
    std::istringstream in(outcome.out);
    for (std::string line; std::getline(in, line);) answers.push_back(json::parse(line));
    return answers;
  }

  test::TemporaryFolder folder_;
  std::string messages_, model_;
};

TEST_F(TemplateCommand, TakesTheTemplateOfTheModel) {
  const auto outcome = hk_run({"template", model_, "--messages", messages_});
  EXPECT_EQ(outcome.out, "<s>Hi é</s>False");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST_F(TemplateCommand, TakesATemplateByFileOrName) {
  const auto file = write("t.jinja", "{{ messages|length }}{{ add_generation_prompt }}{{ bos_token }}\n");
  EXPECT_EQ(hk_run({"template", "--chat-template-file", file, "--messages", messages_}).out, "1True");
  EXPECT_EQ(hk_run({"template", model_, "--chat-template-file", file, "--messages", messages_}).out, "1True<s>");
  EXPECT_EQ(hk_run({"template", "--chat-template-file", file, "--messages", messages_, "--no-generation-prompt"}).out,
            "1False");
  EXPECT_EQ(hk_run({"template", "--chat-template", "chatml", "--messages", messages_}).out,
            "<|im_start|>user\nHi é<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(TemplateCommand, VariablesToolsAndTime) {
  const auto file = write("t.jinja", "{{ a + 1 }}{{ b }}{{ tools|tojson }}{{ strftime_now('%d %b %Y') }}");
  const auto tools = write("tools.json", R"([{"name": "f"}])");
  EXPECT_EQ(hk_run({"template", "--chat-template-file", file, "--messages", messages_, "--tools", tools, "--set", "a=4",
                    "--set", "b=\"x\"", "--now", "2025-07-09T08:05:03"})
                .out,
            "5x[{\"name\": \"f\"}]09 Jul 2025");
}

TEST_F(TemplateCommand, JsonLines) {
  const auto answers =
      lines({"template", "--jsonl", "--now", "2025-01-02"},
            R"({"template": "{{ messages[0].content }}{{ bos_token }}", "messages": [{"content": "é\u2028"}],)"
            R"( "extra": {"bos_token": "B"}})"
            "\n\n"
            R"({"template": "{{ x }}", "context": {"x": [1, null]}})"
            "\n"
            R"({"template": "{{ raise_exception('no ' ~ x) }}", "context": {"x": 5}})"
            "\n"
            R"({"template": "{{ x.y.z }}", "context": {}})"
            "\n"
            R"({"template": "{{ strftime_now('%F') }}{{ add_generation_prompt }}", "messages": []})"
            "\n",
            0);
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[0], json({{"text", "é\u2028B"}}));
  EXPECT_EQ(answers[1], json({{"text", "[1, None]"}}));
  EXPECT_EQ(answers[2]["error"], "no 5");
  EXPECT_EQ(answers[2]["kind"], "raise_exception");
  EXPECT_EQ(answers[3]["kind"], "UndefinedError");
  EXPECT_EQ(answers[3]["line"], 1);
  EXPECT_EQ(answers[4], json({{"text", "2025-01-02True"}}));
}

TEST_F(TemplateCommand, LinesThatAreNoCases) {
  const auto answers = lines({"template", model_, "--jsonl"},
                             "nonsense\n[]\n{\"template\": 5, \"messages\": []}\n{}\n"
                             "{\"messages\": [{\"content\": \"x\"}]}\n{\"messages\": [], \"extra\": []}\n",
                             1);
  ASSERT_EQ(answers.size(), 6u);
  for (const std::size_t bad : {0u, 1u, 2u, 3u, 5u}) {
    EXPECT_NE(answers[bad]["error"].get<std::string>().find("line " + std::to_string(bad + 1)), std::string::npos);
  }
  EXPECT_EQ(answers[4]["text"], "<s>x</s>False");
}

TEST_F(TemplateCommand, SaysWhatIsWrong) {
  const auto expect = [](const test::Outcome& outcome, int exit_code, const std::string& fragment) {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("hk-run: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(fragment), std::string::npos) << outcome.err;
  };
  const auto bare = model("bare.gguf", "");
  expect(hk_run({"template", bare, "--messages", messages_}), 1, "--chat-template-file FILE or --chat-template NAME");
  expect(hk_run({"template", "--messages", messages_}), 2, "a template is needed");
  expect(hk_run({"template", model_}), 2, "--messages");
  expect(hk_run({"template", "--chat-template", "nope", "--messages", messages_}), 2, "chatml");
  expect(hk_run({"template", model_, "--messages", messages_, "--set", "x"}), 2, "NAME=JSON");
  expect(hk_run({"template", model_, "--messages", messages_, "--set", "x=y"}), 2, "quotes");
  expect(hk_run({"template", model_, "--messages", messages_, "--now", "soon"}), 2, "YYYY-MM-DD");
  expect(hk_run({"template", model_, "--messages", write("bad.json", "{\"a\": 1")}), 1, "bad.json");
  expect(hk_run({"template", model_, "--messages", write("no_list.json", "{}")}), 1, "expected a JSON list");
  const auto broken = write("broken.jinja", "one\n{% if %}");
  expect(hk_run({"template", "--chat-template-file", broken, "--messages", messages_}), 1, "line 2, column 7");
}

}  // namespace
}  // namespace hk::cli
