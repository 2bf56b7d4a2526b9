// A GGUF file of a byte vocabulary with a chat template: a model for requests, and a beginning for container files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/gguf_builder.h"
#include "tokenizer/byte_alphabet.h"

namespace hk::fuzz {

inline test::GgufBuilder byte_model() {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types(256, 1);
  for (int b = 0; b < 256; ++b) tokens.emplace_back(tokenizer::alphabet_char(static_cast<std::uint8_t>(b)));
  tokens.emplace_back("ab");
  types.push_back(1);
  for (const char* text : {"<s>", "</s>", "<|user|>"}) {
    tokens.emplace_back(text);
    types.push_back(3);
  }
  test::GgufBuilder builder;
  builder.text("general.architecture", "llama");
  builder.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  builder.texts("tokenizer.ggml.tokens", tokens).array("tokenizer.ggml.token_type", 5, types);
  builder.texts("tokenizer.ggml.merges", {"a b"});
  builder.u32("tokenizer.ggml.bos_token_id", 257).u32("tokenizer.ggml.eos_token_id", 258);
  builder.text("tokenizer.chat_template",
               "{% for m in messages %}<|user|>{{ m.role }}: {{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | "
               "tojson }}{% endif %}{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if "
               "add_generation_prompt %}<s>{% endif %}");
  return builder;
}

}  // namespace hk::fuzz
