// Checks and joins (see conversation_json.h).
#include "cli/batch/conversation_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace hk::cli {
namespace {

std::string joined_parts(const Json& parts, const std::string& place) {
  std::string text;
  for (const auto& part : parts) {
    if (part.is_string()) {
      text += part.get_ref<const std::string&>();
      continue;
    }
    const bool is_text = part.is_object() && part.contains("type") && part["type"] == "text" && part.contains("text");
    if (!is_text) refuse_field(part, place + ".content", "text parts only: {\"type\": \"text\", \"text\": ...}");
    text += field_text(part["text"], place + ".content");
  }
  return text;
}

}  // namespace

std::string plain_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty()) refuse_field(messages, "messages", "a list of at least one message");
  Json plain = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string place = fmt::format("messages[{}]", i);
    Json message = messages[i];
    if (!message.is_object() || !message.contains("role"))
      refuse_field(message, place, "an object with 'role' and 'content'");
    field_text(message["role"], place + ".role");
    const auto content = message.find("content");
    if (content != message.end() && content->is_array()) {
      *content = joined_parts(*content, place);
    } else if (content != message.end() && !content->is_null() && !content->is_string()) {
      refuse_field(*content, place + ".content", "a text");
    } else if (content == message.end() && !message.contains("tool_calls")) {
      throw Error(fmt::format("'{}' has no 'content'", place));
    }
    plain.push_back(std::move(message));
  }
  return json_text(plain);
}

}  // namespace hk::cli
