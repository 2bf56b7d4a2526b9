// Json values of the metadata: flat arrays read element by element, and a check that bounds nesting.
//
// Layer: engine/container. Event based: no document is built, so hostile nesting costs neither stack nor memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

/// Deeper json is refused: no metadata needs it, and programs that walk documents by recursion would fall over.
inline constexpr std::size_t kMaxJsonDepth = 128;

/// "" when the text is one valid json value of bounded depth, else what is wrong.
std::string check_json(std::string_view text);

// Each reads a flat array; returns "" or what is wrong (not an array, an element of another type, out of range).
std::string read_json_strings(std::string_view text, std::vector<std::string>& out);
std::string read_json_integers(std::string_view text, std::vector<std::int32_t>& out);
std::string read_json_floats(std::string_view text, std::vector<float>& out);
/// Elements of the outermost array, nested ones counted as one.
std::string count_json_elements(std::string_view text, std::size_t& count);
/// First character that is not white space; 0 when there is none.
char first_json_character(std::string_view text);

}  // namespace hk::engine
