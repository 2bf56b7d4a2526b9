// libFuzzer target: arbitrary templates with arbitrary variables.
//
// Up to the first NUL the input is the template; what follows is JSON, used when it is an object. What must hold: no
// crash, an end within the limits, spans that cover the text, and the same prompt when rendered again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tokenizer/chat_template.h"
#include "tokenizer/jinja/json.h"

namespace {

using hk::tokenizer::ChatTemplate;
namespace jinja = hk::tokenizer::jinja;

const jinja::Value& usual_variables() {
  static const jinja::Value variables = jinja::parse_json(
      R"({"messages": [{"role": "system", "content": "S é"}, {"role": "user", "content": [{"type": "text", "text": "<|x|>"}]},
          {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1, 2.5]}}}]}],
          "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "add_generation_prompt": true,
          "x": "ab c", "y": "", "l": [3, 1, 2], "d": {"b": 1, "a": {"c": null}}, "n": 5, "f": -0.5,
          "big": 123456789012345678901234567890, "t": true, "z": null})");
  return variables;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(input.find('\0'), size);
  hk::tokenizer::RenderOptions options;
  options.max_steps = 20'000;
  options.max_memory = std::size_t{4} << 20;
  options.max_output = std::size_t{1} << 20;
  options.clock = jinja::fixed_clock({2025, 7, 9, 8, 5, 3, 0});
  jinja::Value variables = usual_variables();
  if (cut < size) {
    try {
      const jinja::Value parsed = jinja::parse_json(input.substr(cut + 1));
      if (parsed.is_dict()) variables = parsed;
    } catch (const hk::Error&) {
    }
  }
  try {
    const auto chat_template = ChatTemplate::parse(input.substr(0, cut), "fuzz");
    const auto result = chat_template.render_spans(variables, options);
    std::size_t end = 0;
    for (const auto& span : result.spans) {
      require(span.begin == end && span.end > span.begin);
      end = span.end;
    }
    require(end == result.text.size());
    require(chat_template.render(variables, options) == result.text);
  } catch (const hk::Error&) {
  }
  return 0;
}
