// The person's own editor for a text that is too much for a line.
//
// Layer: cli/chat.
#pragma once

#include <optional>
#include <string>

namespace hk::cli {

/// Lets $VISUAL or $EDITOR (else vi or nano) edit `text` in a temporary file. nullopt when the editor ended with a
/// failure. Throws hk::Error when there is no editor or no place for the file.
std::optional<std::string> edit_in_editor(const std::string& text);

}  // namespace hk::cli
