// Fields of a request read with care: what was expected, what was found, in one sentence.
//
// Layer: cli.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generate/model.h"

namespace hk::cli {

using Json = nlohmann::ordered_json;

/// One JSON text, the order of keys kept. Refuses deep nesting and objects with thousands of keys, which cost more than
/// their size. Throws hk::Error with the place of what is wrong.
Json parse_json_line(std::string_view text);
/// One line without its end; never fails.
std::string json_text(const Json& value);

// Each throws hk::Error naming `field`, the value and what was expected.
double field_number(const Json& value, std::string_view field);
std::int64_t field_integer(const Json& value, std::string_view field, std::int64_t least, std::int64_t most);
bool field_boolean(const Json& value, std::string_view field);
const std::string& field_text(const Json& value, std::string_view field);
/// One text or a list of texts.
std::vector<std::string> field_texts(const Json& value, std::string_view field);
std::vector<engine::TokenId> field_tokens(const Json& value, std::string_view field);
[[noreturn]] void refuse_field(const Json& value, std::string_view field, std::string_view expected);

}  // namespace hk::cli
