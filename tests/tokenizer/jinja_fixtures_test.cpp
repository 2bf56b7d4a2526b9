// Every small case of the template language, with the outcome of Jinja2.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "tests/support/fixtures.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/json.h"

namespace hk::tokenizer {
namespace {

using jinja::Value;

std::string text_of(const Value& line, const char* key) {
  const Value* found = line.as_dict().find(key);
  return found == nullptr ? std::string() : std::string(found->view());
}

TEST(JinjaFixtures, AllCases) {
  HK_FIXTURE(path, "fixtures/chat/jinja-unit.jsonl");
  RenderOptions options;
  options.clock = jinja::fixed_clock(jinja::parse_clock("2025-07-09T08:05:03"));
  std::ifstream in(path);
  std::map<std::string, int> passed;
  std::size_t count = 0;
  for (std::string text; std::getline(in, text); ++count) {
    const Value line = jinja::parse_json(text);
    const std::string id = text_of(line, "id");
    const Value* expected = line.as_dict().find("expected");
    try {
      const auto result =
          ChatTemplate::parse(text_of(line, "template"), id).render(*line.as_dict().find("context"), options);
      ASSERT_NE(expected, nullptr) << id << ": rendered '" << result << "' instead of " << text_of(line, "error");
      EXPECT_EQ(result, expected->view()) << id;
    } catch (const TemplateError& error) {
      ASSERT_EQ(expected, nullptr) << id << ": " << error.what();
      EXPECT_GE(error.line(), 1u);
      EXPECT_GE(error.column(), 1u);
      if (text_of(line, "error_kind") == "raise_exception") {
        EXPECT_TRUE(error.raised()) << id << ": " << error.what();
        EXPECT_EQ(error.message(), text_of(line, "error")) << id;
      }
    }
    ++passed[text_of(line, "tier")];
  }
  EXPECT_EQ(count, 997u);
  EXPECT_GT(passed["core"], 600);
  EXPECT_GT(passed["wide"], 200);
  EXPECT_GT(passed["quirk"], 80);
}

}  // namespace
}  // namespace hk::tokenizer
