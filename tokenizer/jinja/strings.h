// String operations on Text that methods and filters share; all keep the origin of every byte.
//
// Layer: tokenizer/jinja.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/text.h"

namespace hk::tokenizer::jinja {

enum class Side { kBoth, kLeft, kRight };

/// Without `characters` strips white space; else any of its code points.
Text strip(const Text& text, Side side, std::optional<std::string_view> characters);
/// str.replace; at most `count` places, all when negative.
Text replace(const Text& text, const Text& from, const Text& to, std::int64_t count);
/// str.split / str.rsplit by a separator; at most `limit` cuts, all when negative.
std::vector<Text> split(const Text& text, std::string_view separator, std::int64_t limit);
std::vector<Text> split_right(const Text& text, std::string_view separator, std::int64_t limit);
/// By runs of white space.
std::vector<Text> split_blank(const Text& text, std::int64_t limit);
std::vector<Text> split_blank_right(const Text& text, std::int64_t limit);
std::vector<Text> split_lines(const Text& text, bool keep_ends);
/// Pads to `width` code points; `fill` is one code point.
Text pad(const Text& text, std::size_t length, std::int64_t width, std::string_view fill, Side text_side);

}  // namespace hk::tokenizer::jinja
