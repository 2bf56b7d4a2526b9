// Recognises answers and errors in both forms.
#include "cli/batch/result_line.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/json_fields.h"

namespace hk::cli {
namespace {

/// "i..." for an id, "" for what can be none.
std::string id_key(const Json& id) {
  if (id.is_string()) return "i" + id.get_ref<const std::string&>();
  return id.is_number_integer() ? "i" + json_text(id) : "";
}

}  // namespace

std::optional<ResultLine> read_result_line(std::string_view text) {
  Json object;
  try {
    object = Json::parse(text);  // our own writing: no limits needed beyond those of the line
  } catch (const Json::exception&) {
    return std::nullopt;
  }
  if (!object.is_object() || !object.contains("id")) return std::nullopt;
  ResultLine result;
  if (object.contains("custom_id") && object.contains("response")) {
    result.key = id_key(object["custom_id"]);
    result.failed = object["response"].is_null();
  } else if (object.contains("line") && object["line"].is_number_unsigned()) {
    result.failed = object.contains("error");
    const bool answered =
        object.contains("text") || object.contains("choices") || object.contains("score") || object.contains("scores");
    if (!result.failed && !answered) return std::nullopt;
    result.key =
        object["id"].is_null() ? fmt::format("l{}", object["line"].get<std::uint64_t>()) : id_key(object["id"]);
  }
  if (result.key.empty()) return std::nullopt;
  return result;
}

}  // namespace hk::cli
