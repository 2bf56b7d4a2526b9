// Chats to JSON and back.
#include "cli/chat/chat_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace hk::cli {
namespace {

const Json& member(const Json& json, const char* name) {
  if (!json.is_object()) throw Error("expected an object");
  const auto found = json.find(name);
  if (found == json.end()) throw Error(fmt::format("'{}' is missing", name));
  return *found;
}

std::string text_member(const Json& json, const char* name) { return field_text(member(json, name), name); }

std::string optional_text(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? std::string() : field_text(*found, name);
}

const Json& list_member(const Json& json, const char* name) {
  const Json& list = member(json, name);
  if (!list.is_array()) refuse_field(list, name, "a list");
  return list;
}

}  // namespace

Json turn_json(const ChatTurn& turn) {
  Json out{{"question", turn.question}, {"answer", turn.answer}, {"ending", turn.ending}};
  if (!turn.reasoning.empty()) out["reasoning"] = turn.reasoning;
  if (!turn.ids.empty()) out["ids"] = turn.ids;
  return out;
}

ChatTurn turn_from_json(const Json& json) {
  ChatTurn turn;
  turn.question = text_member(json, "question");
  turn.answer = text_member(json, "answer");
  turn.reasoning = optional_text(json, "reasoning");
  turn.ending = optional_text(json, "ending");
  if (const auto ids = json.find("ids"); ids != json.end()) turn.ids = field_tokens(*ids, "ids");
  return turn;
}

Json state_json(const ChatState& state) {
  Json branches = Json::array();
  for (const ChatBranch& branch : state.branches) {
    Json turns = Json::array();
    for (const ChatTurn& turn : branch.turns) turns.push_back(turn_json(turn));
    branches.push_back({{"name", branch.name}, {"system", branch.system}, {"turns", std::move(turns)}});
  }
  return {{"current", state.branch().name}, {"branches", std::move(branches)}};
}

ChatState state_from_json(const Json& json) {
  ChatState state;
  state.branches.clear();
  for (const Json& item : list_member(json, "branches")) {
    ChatBranch branch;
    branch.name = text_member(item, "name");
    branch.system = text_member(item, "system");
    if (state.find(branch.name) != state.branches.size())
      throw Error(fmt::format("there are two branches '{}'", branch.name));
    for (const Json& turn : list_member(item, "turns")) branch.turns.push_back(turn_from_json(turn));
    state.branches.push_back(std::move(branch));
  }
  if (state.branches.empty()) throw Error("there is no branch");
  const std::string current = text_member(json, "current");
  state.current = state.find(current);
  if (state.current == state.branches.size()) throw Error(fmt::format("there is no branch '{}'", current));
  return state;
}

std::string messages_text(const ChatBranch& branch) {
  Json list = Json::array();
  if (!branch.system.empty()) list.push_back({{"role", "system"}, {"content", branch.system}});
  for (const ChatTurn& turn : branch.turns) {
    list.push_back({{"role", "user"}, {"content", turn.question}});
    Json answer{{"role", "assistant"}, {"content", turn.answer}};
    if (!turn.reasoning.empty()) answer["reasoning_content"] = turn.reasoning;
    list.push_back(std::move(answer));
  }
  return Json{{"messages", std::move(list)}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

ChatBranch branch_from_messages(std::string_view text) {
  const Json json = parse_json_line(text);
  const Json& list = json.is_array() ? json : list_member(json, "messages");
  ChatBranch branch;
  std::size_t number = 0;
  for (const Json& message : list) {
    ++number;
    const std::string role = text_member(message, "role");
    const std::string content = optional_text(message, "content");
    const bool answers = !branch.turns.empty() && branch.turns.back().ending.empty();
    if (role == "system" && number == 1) {
      branch.system = content;
    } else if (role == "user" && !answers) {
      ChatTurn turn;
      turn.question = content;
      turn.ending.clear();  // not answered yet
      branch.turns.push_back(std::move(turn));
    } else if (role == "assistant" && answers) {
      branch.turns.back().answer = content;
      branch.turns.back().reasoning = optional_text(message, "reasoning_content");
      branch.turns.back().ending = "end";
    } else {
      throw Error(
          fmt::format("message {} is of the role '{}'; expected an optional system message, then user and "
                      "assistant in turn",
                      number, role));
    }
  }
  if (!branch.turns.empty() && branch.turns.back().ending.empty())
    throw Error("the last message is a user's; expected the assistant's answer to it");
  return branch;
}

}  // namespace hk::cli
