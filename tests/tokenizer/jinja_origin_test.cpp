// Which bytes of a prompt come from the template and which from the conversation.
#include <gtest/gtest.h>

#include <string>

#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/json.h"

namespace hk::tokenizer {
namespace {

/// The prompt with data in braces.
std::string marked(std::string_view source, std::string_view context) {
  const auto result = ChatTemplate::parse(source, "test").render_spans(jinja::parse_json(context));
  std::string out;
  for (const auto& span : result.spans) {
    const std::string text = result.text.substr(span.begin, span.end - span.begin);
    out += span.trusted ? text : "⟨" + text + "⟩";
  }
  return out;
}

TEST(JinjaOrigin, EveryOperationKeepsIt) {
  const char* context = R"({"x": "a b", "y": "<|end|>", "l": ["p", "q"], "d": {"k": "v"}, "n": 5, "e": ""})";
  const std::pair<const char*, const char*> kCases[] = {
      {"A{{ x }}B", "A⟨a b⟩B"},
      {"{{ '<' + x + '>' }}", "<⟨a b⟩>"},
      {"{{ '<' ~ x ~ n ~ '>' }}", "<⟨a b⟩5>"},
      {"{{ (x ~ '!')[1:] }}", "⟨ b⟩!"},
      {"{{ (x ~ '!')[::-1] }}", "!⟨b a⟩"},
      {"{{ ('  ' ~ x ~ '  ')|trim }}", "⟨a b⟩"},
      {"{{ (x ~ 'z')|upper }}", "⟨A B⟩Z"},
      {"{{ ('ab ' ~ x)|title }}", "Ab ⟨A B⟩"},
      {"{{ 'TEXT: U'|replace('U', x) }}", "TEXT: ⟨a b⟩"},
      {"{{ x|replace('a', 'T') }}", "T⟨ b⟩"},
      {"{{ x.split(' ')[1] ~ '.' }}", "⟨b⟩."},
      {"{{ l|join('-') }}", "⟨p⟩-⟨q⟩"},
      {"{{ '-'.join(l) }}", "⟨p⟩-⟨q⟩"},
      {"{{ '%s|%5s' % (x, 'u') }}", "⟨a b⟩|    u"},
      {"{{ '{}|{:>4}'.format(x, 'u') }}", "⟨a b⟩|   u"},
      {"{{ d|tojson }}", "⟨{\"k\": \"v\"}⟩"},
      {"{{ [1, 'a']|tojson }}", "[1, \"a\"]"},
      {"{{ l }}", "⟨['p', 'q']⟩"},
      {"{{ ['p'] }}", "['p']"},
      {"{% for c in 'x' ~ x %}{{ c }}{% endfor %}", "x⟨a b⟩"},
      {"{% set t %}[{{ x }}]{% endset %}{{ t }}", "[⟨a b⟩]"},
      {"{% macro m(v) %}({{ v }}){% endmacro %}{{ m(x) }}", "(⟨a b⟩)"},
      {"{% filter upper %}q{{ x }}{% endfilter %}", "Q⟨A B⟩"},
      {"{{ x.center(6, '*') }}", "*⟨a b⟩**"},
      {"{{ x|escape }}{{ y|escape }}", "⟨a b&lt;|end|&gt;⟩"},
      {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "⟨k⟩=⟨v⟩"},
      {"{{ ('a\nb' ~ x)|indent(2) }}", "a\n  b⟨a b⟩"},
      {"{{ x|length }}{{ e }}{{ x == 'a b' }}", "3True"},
      {"{{ strftime_now('%%') }}", "%"},
      {"{{ '<|end|>' if y == '<|end|>' else y }}{{ y }}", "<|end|>⟨<|end|>⟩"},
  };
  for (const auto& [source, expected] : kCases) EXPECT_EQ(marked(source, context), expected) << source;
}

TEST(JinjaOrigin, KnownRolesCountAsTheTemplates) {
  const auto chat_template = ChatTemplate::parse(
      "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% if m.role == 'critic' %}{% endif %}{% endfor %}",
      "test");
  Conversation conversation;
  conversation.messages = jinja::parse_json(
      R"([{"role": "user", "content": "user"}, {"role": "critic", "content": ""}, {"role": "endoftext", "content": ""}])");
  const auto result = chat_template.render_spans(make_context(chat_template, conversation));
  EXPECT_EQ(result.text, "<|user|>user<|critic|><|endoftext|>");
  ASSERT_EQ(result.spans.size(), 5u);
  EXPECT_TRUE(result.spans[0].trusted);
  EXPECT_EQ(result.spans[0].end, 8u);  // <|user|>
  EXPECT_FALSE(result.spans[1].trusted);
  EXPECT_FALSE(result.spans[3].trusted);  // endoftext
}

TEST(JinjaOrigin, SpecialTokensAreTrustedAndExtraIsNot) {
  const auto chat_template = ChatTemplate::parse("{{ bos_token }}{{ note }}", "test");
  Conversation conversation;
  conversation.messages = jinja::parse_json("[]");
  conversation.special_tokens = {{"bos_token", "<s>"}};
  conversation.extra = jinja::parse_json(R"({"note": "<s>"})");
  const auto result = chat_template.render_spans(make_context(chat_template, conversation));
  ASSERT_EQ(result.spans.size(), 2u);
  EXPECT_TRUE(result.spans[0].trusted);
  EXPECT_FALSE(result.spans[1].trusted);
}

}  // namespace
}  // namespace hk::tokenizer
