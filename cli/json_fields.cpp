// Typed access to JSON values (see json_fields.h).
#include "cli/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"

namespace hk::cli {
namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostKeys = 2000;                    // keys of an ordered object are looked up one by one
constexpr std::size_t kMostValues = std::size_t{1} << 20;  // a number of two bytes becomes a value of 16
constexpr std::size_t kExcerpt = 60;                       // bytes of a value that a message repeats

}  // namespace

Json parse_json_line(std::string_view text) {
  std::vector<std::size_t> keys(static_cast<std::size_t>(kDeepest) + 2);
  std::size_t values = 0;
  const auto watch = [&](int depth, Json::parse_event_t event, Json&) {
    using Event = Json::parse_event_t;
    if (event == Event::value && ++values > kMostValues)
      throw Error(fmt::format("holds more than {} values", kMostValues));
    if (depth >= kDeepest && (event == Event::object_start || event == Event::array_start))
      throw Error(fmt::format("nested more than {} levels deep", kDeepest));
    const auto level = static_cast<std::size_t>(depth);
    if (event == Event::object_start) keys[level + 1] = 0;
    if (event == Event::key && ++keys[level] > kMostKeys)
      throw Error(fmt::format("an object has more than {} keys", kMostKeys));
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at ...: syntax error ..."
    if (const auto bracket = what.find("] "); bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
    throw Error(fmt::format("not valid JSON: {}", what));
  }
}

std::string json_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

void refuse_field(const Json& value, std::string_view field, std::string_view expected) {
  std::string excerpt =
      value.is_structured() ? std::string(value.is_array() ? "a list" : "an object") : json_text(value);
  if (excerpt.size() > kExcerpt) {
    excerpt.resize(kExcerpt);
    excerpt.resize(find_invalid_utf8(excerpt));  // the cut may have hit the middle of a character
    excerpt += "...";
  }
  throw Error(fmt::format("'{}' is {}; expected {}", field, excerpt, expected));
}

double field_number(const Json& value, std::string_view field) {
  if (!value.is_number()) refuse_field(value, field, "a number");
  const auto number = value.get<double>();
  if (!std::isfinite(number)) refuse_field(value, field, "a finite number");
  return number;
}

std::int64_t field_integer(const Json& value, std::string_view field, std::int64_t least, std::int64_t most) {
  const auto expected = [&] { return fmt::format("a whole number from {} to {}", least, most); };
  if (!value.is_number()) refuse_field(value, field, expected());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    refuse_field(value, field, expected());
  if (value.is_number_float()) {
    // 16.0 is what some writers make of 16.
    const auto number = value.get<double>();
    constexpr double kExact = 9007199254740992.0;
    if (!(std::abs(number) <= kExact) || number != std::floor(number) || number < static_cast<double>(least) ||
        number > static_cast<double>(most))
      refuse_field(value, field, expected());
    return static_cast<std::int64_t>(number);
  }
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) refuse_field(value, field, expected());
  return number;
}

bool field_boolean(const Json& value, std::string_view field) {
  if (!value.is_boolean()) refuse_field(value, field, "true or false");
  return value.get<bool>();
}

const std::string& field_text(const Json& value, std::string_view field) {
  if (!value.is_string()) refuse_field(value, field, "a text");
  return value.get_ref<const std::string&>();
}

std::vector<std::string> field_texts(const Json& value, std::string_view field) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array()) refuse_field(value, field, "a text or a list of texts");
  std::vector<std::string> texts;
  for (const auto& item : value) texts.push_back(field_text(item, field));
  return texts;
}

std::vector<engine::TokenId> field_tokens(const Json& value, std::string_view field) {
  if (!value.is_array()) refuse_field(value, field, "a list of token ids");
  std::vector<engine::TokenId> ids;
  for (const auto& item : value)
    ids.push_back(
        static_cast<engine::TokenId>(field_integer(item, field, 0, std::numeric_limits<engine::TokenId>::max())));
  return ids;
}

}  // namespace hk::cli
