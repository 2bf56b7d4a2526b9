// What of an answer may reach a terminal: text, never commands to it.
//
// Layer: cli/chat.
#pragma once

#include <string>
#include <string_view>

namespace hk::cli {

/// `text` (whole UTF-8 characters) without control characters other than line break and tab: a model, or a text it
/// repeats, must not move the cursor, set titles or write to the clipboard of the person who reads it.
std::string terminal_safe(std::string_view text);

}  // namespace hk::cli
