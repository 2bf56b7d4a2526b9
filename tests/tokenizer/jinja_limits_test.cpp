// Hostile templates and data: each ends in an error, soon, and without much memory.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/json.h"

namespace hk::tokenizer {
namespace {

std::string repeat(std::string_view text, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

/// Kind of the error, or "" when there was none.
std::string kind_of(std::string_view source, std::string_view context = "{}") {
  try {
    ChatTemplate::parse(source, "test").render(jinja::parse_json(context));
    return "";
  } catch (const TemplateError& error) {
    return error.kind();
  }
}

TEST(JinjaLimits, EndlessWork) {
  const char* kSources[] = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(s='ab') %}{% for i in range(99) %}{% set ns.s = ns.s|replace('a', 'aaaaaaaaa') %}{% "
      "endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson "
      "}}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}",
      "{% set ns = namespace(l={}) %}{% for i in range(9999) %}{% set ns.l = {'a': ns.l} %}{% endfor %}",
      "{% set ns = namespace(l='') %}{% for i in range(9999) %}{% set ns.l = ns.l|map('upper') %}{% endfor %}",
      "{% set ns = namespace(l=[]) %}{% for i in range(9999) %}{% set ns.l = [ns.l.index] %}{% endfor %}",
      "{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}",
      "{% set s = 'x' * 99999999 %}{{ s ~ s ~ s }}",
      "{{ 'x' * 9999999999 }}",
      "{{ [1] * 9999999999 }}",
      "{{ 'x'.center(9999999999) }}",
      "{{ '%9999999999d' % 5 }}",
      "{{ '{:9999999999}'.format(5) }}",
      "{{ [1]|tojson(indent=9999999999) }}",
      "{{ 'a'|indent(9999999999) }}",
      "{{ '\\t'.expandtabs(9999999999) }}",
      "{{ [1]|batch(9999999999, 'x')|list }}",
      "{{ [1]|slice(9999999999)|list }}",
      "{% set ns = namespace(k=1) %}{% for i in range(9999) %}{% set ns.k = (ns.k, ns.k) %}{% endfor %}",
  };
  for (const auto* source : kSources) {
    const auto start = std::chrono::steady_clock::now();
    const std::string kind = kind_of(source);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    EXPECT_TRUE(kind == "LimitError" || kind == "ValueError" || kind == "OverflowError") << source << ": " << kind;
    EXPECT_LT(took.count(), 20) << source;
  }
}

TEST(JinjaLimits, BigNumbersAreExactUpToALimit) {
  const auto render = [](std::string_view source) {
    return ChatTemplate::parse(source, "test").render(jinja::parse_json("{\"n\": 18446744073709551615}"));
  };
  EXPECT_EQ(render("{{ n }} {{ n + 1 }} {{ n|tojson }} {{ -n }}"),
            "18446744073709551615 18446744073709551616 18446744073709551615 -18446744073709551615");
  EXPECT_EQ(render("{{ 2 ** 200 // 3 ** 50 }} {{ -(2 ** 200) % 1000007 }}"),
            "2238393297946874000179418290327143433 553391");
  EXPECT_EQ(kind_of("{{ 2 ** 99999999 }}"), "OverflowError");
  EXPECT_EQ(kind_of("{{ 9 ** (9 ** 9) }}"), "OverflowError");
  EXPECT_EQ(kind_of(std::string("{{ ") + repeat("9", 20000) + " }}"), "TemplateSyntaxError");
}

TEST(JinjaLimits, DeepSyntax) {
  const std::size_t n = 20000;
  const std::string kSources[] = {
      std::string("{{ ") + repeat("(", n) + repeat(")", n) + " }}",
      std::string("{{ ") + repeat("[", n) + repeat("]", n) + " }}",
      std::string("{{ ") + repeat("{1:", n) + repeat("}", n) + " }}",
      std::string("{{ ") + repeat("-", n) + "1 }}",
      std::string("{{ ") + repeat("not ", n) + "1 }}",
      std::string("{{ x") + repeat("[0", n) + repeat("]", n) + " }}",
      std::string("{{ x") + repeat("(x", n) + repeat(")", n) + " }}",
      std::string("{{ x") + repeat(".a", n) + " }}",
      std::string("{{ x") + repeat("()", n) + " }}",
      std::string("{{ x") + repeat("|e", n) + " }}",
      std::string("{{ 1") + repeat("+1", n) + " }}",
      std::string("{{ 1") + repeat(" if 1 else 1", n) + " }}",
      std::string("{{ 1") + repeat(" is odd", n) + " }}",
      std::string("{{ 1") + repeat(" and 1", n) + " }}",
      repeat("{% if 1 %}", n) + repeat("{% endif %}", n),
      repeat("{% for x in y %}", n),
  };
  for (const auto& source : kSources) EXPECT_EQ(kind_of(source), "TemplateSyntaxError") << source.substr(0, 40);
  EXPECT_EQ(kind_of(std::string("{{ 1") + repeat(" ~ 1", n) + " }}"), "");
  EXPECT_EQ(kind_of(std::string("{% if 0 %}") + repeat("{% elif 0 %}", n) + "{% endif %}"), "");
}

TEST(JinjaLimits, ChainsAndCirclesOfNamespacesAreFreed) {
  EXPECT_EQ(kind_of("{% set ns = namespace() %}{% set ns.self = ns %}{% macro m() %}{{ ns }}{% endmacro %}"
                    "{% set ns.m = m %}"),
            "");
  EXPECT_EQ(kind_of("{% set h = namespace(last=none) %}{% for i in range(50000) %}"
                    "{% set n = namespace(next=h.last) %}{% set h.last = n %}{% endfor %}"),
            "");
  EXPECT_EQ(kind_of("{% set h = namespace() %}{% set first = namespace() %}{% set h.last = first %}"
                    "{% for i in range(50000) %}{% set n = namespace() %}{% set l = h.last %}{% set l.next = n %}"
                    "{% set h.last = n %}{% endfor %}"),
            "");
  EXPECT_EQ(kind_of("{% set h = namespace(f=none) %}{% for i in range(20000) %}{% set g = h.f %}"
                    "{% macro m() %}{{ g }}{% endmacro %}{% set h.f = m %}{% endfor %}"),
            "");
  EXPECT_EQ(kind_of("{% set h = namespace(l=none) %}{% for i in range(20000) %}{% for j in [1] %}"
                    "{% set _ = loop.changed(h.l) %}{% set h.l = loop %}{% endfor %}{% endfor %}"),
            "");
}

TEST(JinjaLimits, LongNeedlesAndManyKeys) {
  // Quadratic algorithms would take minutes here.
  EXPECT_EQ(kind_of("{% set a = 'a' * 2000000 %}{% set b = 'a' * 999999 ~ 'b' %}{{ b in a }}{{ a.rfind(b) }}"
                    "{{ a.count(b) }}{{ a.replace(b, 'x')|length }}{{ a.rsplit(b)|length }}"),
            "");
  EXPECT_EQ(kind_of("{% set a = 'ab' * 500000 %}{{ a.split('b')|length }}{{ a.rsplit('b')|length }}"
                    "{{ a.replace('b', 'cc')|length }}{{ a.count('a') }}"),
            "");
  EXPECT_EQ(kind_of("{{ range(50000)|map('string')|unique|list|length }}{{ dict(range(50000)|map('string')|batch(2))"
                    "|length }}"),
            "");
}

TEST(JinjaLimits, DeepJson) {
  EXPECT_THROW(jinja::parse_json(repeat("[", 100000)), Error);
  EXPECT_THROW(jinja::parse_json(repeat("[", 300) + repeat("]", 300)), Error);
  EXPECT_THROW(jinja::parse_json(repeat("{\"a\":", 100000)), Error);
  EXPECT_NO_THROW(jinja::parse_json(repeat("[", 150) + repeat("]", 150)));
  EXPECT_THROW(jinja::parse_json(""), Error);
  EXPECT_THROW(jinja::parse_json("{\"a\" 1}"), Error);
  EXPECT_THROW(jinja::parse_json("\"\xFF\""), Error);
}

TEST(JinjaLimits, LimitsOfTheCaller) {
  const auto chat_template = ChatTemplate::parse("{% for i in range(1000) %}0123456789{% endfor %}", "test");
  const jinja::Value context = jinja::parse_json("{}");
  RenderOptions options;
  EXPECT_EQ(chat_template.render(context, options).size(), 10000u);
  options.max_output = 9999;
  EXPECT_THROW(chat_template.render(context, options), TemplateError);
  options.max_output = 10000;
  options.max_steps = 500;
  EXPECT_THROW(chat_template.render(context, options), TemplateError);
}

TEST(JinjaErrors, SayWhere) {
  try {
    ChatTemplate::parse("line one\n  {% if x %}\n{{ é | nosuch }}", "mine");
    FAIL();
  } catch (const TemplateError& error) {
    EXPECT_EQ(error.line(), 3u);
  }
  try {
    ChatTemplate::parse("a\n{{ 'é' ~ missing.name }}", "mine").render(jinja::parse_json("{}"));
    FAIL();
  } catch (const TemplateError& error) {
    EXPECT_EQ(error.line(), 2u);
    EXPECT_EQ(error.column(), 17u);
    EXPECT_EQ(error.kind(), "UndefinedError");
    EXPECT_EQ(error.message(), "'missing' is undefined");
    EXPECT_STREQ(error.what(), "chat template mine, line 2, column 17: UndefinedError: 'missing' is undefined");
  }
  EXPECT_THROW(ChatTemplate::parse("\xFF", "mine"), Error);
  EXPECT_THROW(ChatTemplate::parse("x", "mine").render(jinja::parse_json("[]")), Error);
}

}  // namespace
}  // namespace hk::tokenizer
