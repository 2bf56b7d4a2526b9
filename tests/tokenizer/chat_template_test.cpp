// Conversations through the templates of real models, and the templates of our own.
#include "tokenizer/chat_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/support/fixtures.h"
#include "tokenizer/jinja/json.h"

namespace hk::tokenizer {
namespace {

using jinja::Value;

Value get(const Value& dict, const char* key) {
  const Value* found = dict.as_dict().find(key);
  return found == nullptr ? Value() : *found;
}

std::string read(const std::filesystem::path& path) {
  const auto bytes = test::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ChatTemplate, AllConversations) {
  HK_FIXTURE(folder, "fixtures/chat");
  if (!std::filesystem::exists(folder / "cases.jsonl")) GTEST_SKIP() << "conversations are not in the repository";
  RenderOptions options;
  options.clock = jinja::fixed_clock(jinja::parse_clock("2025-07-09T08:05:03"));
  std::map<std::string, std::pair<ChatTemplate, Value>> templates;
  const Value index = jinja::parse_json(read(folder / "index.json"));
  for (const Value& entry : get(index, "templates").items()) {
    const std::string id(get(entry, "id").view());
    auto parsed = ChatTemplate::parse(read(folder / std::string(get(entry, "file").view())), id);
    templates.emplace(id, std::pair(std::move(parsed), get(entry, "special_tokens")));
  }
  std::ifstream in(folder / "cases.jsonl");
  std::size_t count = 0;
  for (std::string text; std::getline(in, text); ++count) {
    const Value line = jinja::parse_json(text);
    const std::string id(get(line, "id").view());
    const auto& [chat_template, tokens] = templates.at(std::string(get(line, "template").view()));
    Conversation conversation;
    conversation.messages = get(line, "messages");
    conversation.tools = get(line, "tools");
    conversation.add_generation_prompt = get(line, "add_generation_prompt").as_bool();
    conversation.extra = get(line, "extra");
    for (const auto& [name, token] : tokens.as_dict().entries())
      if (token.is_string()) conversation.special_tokens.emplace_back(name.view(), token.view());
    const Value expected = get(line, "expected");
    try {
      const auto result = chat_template.render_spans(make_context(chat_template, conversation), options);
      ASSERT_TRUE(expected.is_string()) << id << ": rendered instead of " << get(line, "error").view();
      ASSERT_EQ(result.text, expected.view()) << id;
      std::size_t end = 0;
      for (const auto& span : result.spans) {
        ASSERT_EQ(span.begin, end) << id;
        ASSERT_LT(span.begin, span.end) << id;
        end = span.end;
      }
      ASSERT_EQ(end, result.text.size()) << id;
    } catch (const TemplateError& error) {
      ASSERT_TRUE(expected.is_none()) << id << ": " << error.what();
      if (get(line, "error_kind").view() == "raise_exception") {
        EXPECT_EQ(error.message(), get(line, "error").view()) << id;
      }
    }
  }
  EXPECT_EQ(count, 1719u);
}

Conversation three_turns() {
  Conversation conversation;
  conversation.messages = jinja::parse_json(
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U"}, {"role": "assistant", "content": "A"},
          {"role": "user", "content": "V"}])");
  conversation.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  return conversation;
}

std::string builtin(std::string_view name, const Conversation& conversation) {
  const auto source = find_builtin_template(name);
  if (!source) throw std::runtime_error("no such template");
  const auto chat_template = ChatTemplate::parse(*source, std::string(name));
  return chat_template.render(make_context(chat_template, conversation));
}

TEST(BuiltinTemplates, WriteTheTurnsOfTheirFamily) {
  const std::pair<const char*, const char*> kExpected[] = {
      {"chatml",
       "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n"
       "<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n"},
      {"command-r",
       "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>U"
       "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|>"
       "<|USER_TOKEN|>V<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
      {"deepseek", "<s>S<｜User｜>U<｜Assistant｜>A<｜end▁of▁sentence｜><｜User｜>V<｜Assistant｜>"},
      {"gemma",
       "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>user\nV"
       "<end_of_turn>\n<start_of_turn>model\n"},
      {"llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]"},
      {"llama3",
       "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nU"
       "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user"
       "<|end_header_id|>\n\nV<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"mistral", "<s>[INST] S\n\nU [/INST] A</s>[INST] V [/INST]"},
      {"phi3",
       "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n<|assistant|>\n"},
      {"vicuna", "S\n\nUSER: U\nASSISTANT: A</s>\nUSER: V\nASSISTANT:"},
      {"zephyr", "<|system|>\nS</s>\n<|user|>\nU</s>\n<|assistant|>\nA</s>\n<|user|>\nV</s>\n<|assistant|>\n"},
  };
  EXPECT_EQ(std::size(kExpected), builtin_template_names().size());
  for (const auto& [name, expected] : kExpected) EXPECT_EQ(builtin(name, three_turns()), expected) << name;
}

TEST(BuiltinTemplates, WithoutGenerationPromptAndTokens) {
  Conversation conversation = three_turns();
  conversation.add_generation_prompt = false;
  conversation.special_tokens.clear();
  for (const auto name : builtin_template_names()) {
    const std::string text = builtin(name, conversation);
    EXPECT_EQ(text.find("<s>"), std::string::npos) << name;
    EXPECT_EQ(text.find("None"), std::string::npos) << name;
    EXPECT_EQ(text.find("V") == std::string::npos, false) << name;
  }
}

TEST(BuiltinTemplates, RefuseWhatTheyCannotSay) {
  Conversation conversation = three_turns();
  conversation.messages = jinja::parse_json(R"([{"role": "user", "content": [{"type": "text", "text": "x"}]}])");
  for (const auto name : builtin_template_names()) EXPECT_THROW(builtin(name, conversation), TemplateError) << name;
  conversation.messages = jinja::parse_json(R"([{"role": "critic", "content": "x"}])");
  for (const auto name : {"command-r", "deepseek", "gemma", "llama2", "mistral", "vicuna"})
    EXPECT_THROW(builtin(name, conversation), TemplateError) << name;
  EXPECT_FALSE(find_builtin_template("nope").has_value());
}

}  // namespace
}  // namespace hk::tokenizer
