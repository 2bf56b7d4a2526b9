// libFuzzer target: arbitrary bytes as JSON, through every reader of it: messages and template variables, metadata.
//
// What must hold: no crash; what was read is written as JSON that means the same; what the metadata check accepts is
// JSON for the others too, as far as their limits go.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/container/metadata_json.h"
#include "tests/fuzz/memory_file.h"
#include "tokenizer/jinja/json.h"

namespace {

using hk::fuzz::require;
namespace engine = hk::engine;
namespace jinja = hk::tokenizer::jinja;

void read_as_metadata(std::string_view text) {
  std::vector<std::string> texts;
  std::vector<std::int32_t> integers;
  std::vector<float> floats;
  std::size_t count = 0;
  const bool valid = engine::check_json(text).empty();
  const bool counted = engine::count_json_elements(text, count).empty();
  if (counted) require(valid);
  if (engine::read_json_strings(text, texts).empty()) require(valid && counted && texts.size() == count);
  if (engine::read_json_integers(text, integers).empty()) {
    require(valid && counted && integers.size() == count);
    require(engine::read_json_floats(text, floats).empty() && floats.size() == count);
  }
  engine::first_json_character(text);
}

void read_as_value(std::string_view text) {
  std::string written;
  try {
    written = jinja::dump_json(jinja::parse_json(text)).view();
  } catch (const hk::Error&) {
    return;
  }
  // A number beyond double is written as Infinity, as Python does, which is no JSON.
  if (written.find("Infinity") != std::string::npos) return;
  require(jinja::dump_json(jinja::parse_json(written)).view() == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_metadata(text);
  read_as_value(text);
  return 0;
}
