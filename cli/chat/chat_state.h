// All that there is to know of a chat: its branches with their turns. What is kept in a session file, and plain data.
//
// Layer: cli/chat.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generate/model.h"

namespace hk::cli {

struct ChatTurn {
  std::string question;
  std::string reasoning;  ///< without its marks
  std::string answer;
  std::string ending = "end";             ///< why it ended, as finish_reason_name says it
  std::vector<engine::TokenId> ids = {};  ///< the tokens of `answer`; empty when they are not known
};

struct ChatBranch {
  std::string name = "main";
  std::string system;
  std::vector<ChatTurn> turns;
};

struct ChatState {
  std::vector<ChatBranch> branches = {ChatBranch{}};  ///< never empty, names differ
  std::size_t current = 0;

  ChatBranch& branch() { return branches[current]; }
  const ChatBranch& branch() const { return branches[current]; }
  /// Index of the branch of this name; branches.size() when there is none.
  std::size_t find(std::string_view name) const {
    std::size_t i = 0;
    while (i < branches.size() && branches[i].name != name) ++i;
    return i;
  }
};

/// Told what happens to a chat, while it happens. Whoever keeps it on disk listens.
class ChatListener {
 public:
  virtual ~ChatListener() = default;
  virtual void question_asked(const std::string& question) = 0;
  /// Of the answer, as it arrives.
  virtual void text_came(std::string_view text, bool reasoning) = 0;
  /// The latest turn is complete and part of `state`.
  virtual void turn_ended(const ChatState& state) = 0;
  /// Anything else changed, or the question that was asked has not become a turn.
  virtual void state_changed(const ChatState& state) = 0;
};

}  // namespace hk::cli
