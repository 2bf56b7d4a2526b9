// A chat as JSON: for session files, and as the list of messages that other programs read.
//
// Layer: cli/chat.
#pragma once

#include <string>
#include <string_view>

#include "cli/chat/chat_state.h"
#include "cli/json_fields.h"

namespace hk::cli {

Json turn_json(const ChatTurn& turn);
Json state_json(const ChatState& state);
/// Both throw hk::Error with a sentence about what is wrong.
ChatTurn turn_from_json(const Json& json);
ChatState state_from_json(const Json& json);

/// {"messages": [{"role", "content"}, ...]} of one branch, on several lines.
std::string messages_text(const ChatBranch& branch);
/// Of such a text, or of a list of messages alone. The roles must be an optional system message and then user and
/// assistant in turn. Throws hk::Error.
ChatBranch branch_from_messages(std::string_view text);

}  // namespace hk::cli
