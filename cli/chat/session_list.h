// The list of kept chats for a person.
//
// Layer: cli/chat.
#pragma once

namespace hk::cli {

/// One line a session on stdout: name, turns, age, size, model, first question; a script can cut it at the tabs.
void write_session_list();

}  // namespace hk::cli
