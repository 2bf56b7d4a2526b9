// Parsing and filling (see field_template.h).
#include "cli/batch/field_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace hk::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> split(std::string_view name) {
  std::vector<std::string> steps;
  while (true) {
    const auto dot = name.find('.');
    steps.emplace_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return steps;
    name.remove_prefix(dot + 1);
  }
}

const Json* step_into(const Json& value, const std::string& name) {
  if (value.is_object()) {
    const auto found = value.find(name);
    return found == value.end() ? nullptr : &*found;
  }
  std::size_t index = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool number = problem == std::errc{} && end == name.data() + name.size();
  return value.is_array() && number && index < value.size() ? &value[index] : nullptr;
}

}  // namespace

FieldTemplate::FieldTemplate(std::string_view text, std::string_view option, bool escapes) {
  std::string literal;
  const auto refuse = [&](std::string_view why) {
    return Error(fmt::format("{}: '{}': {}", option, text, why), ErrorKind::kUsage);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (escapes && c == '\\' && (next == 'n' || next == 't' || next == '\\')) {
      literal += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
      ++i;
    } else if ((c == '{' || c == '}') && next == c) {
      literal += c;
      ++i;
    } else if (c == '{') {
      const auto close = text.find('}', i);
      if (close == std::string_view::npos) throw refuse("a { has no }; {{ is a brace of the text");
      const auto name = text.substr(i + 1, close - i - 1);
      if (name.empty()) throw refuse("{} names no field");
      if (!literal.empty()) parts_.push_back({std::exchange(literal, {}), {}});
      parts_.push_back({{}, split(name)});
      i = close;
    } else if (c == '}') {
      throw refuse("a } has no {; }} is a brace of the text");
    } else {
      literal += c;
    }
  }
  if (!literal.empty()) parts_.push_back({std::move(literal), {}});
}

std::string FieldTemplate::fill(const Json& object) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.text;
    if (part.field.empty()) continue;
    const Json* value = &object;
    for (const auto& name : part.field) {
      value = step_into(*value, name);
      if (value == nullptr)
        throw Error(fmt::format("the template's field '{}' is missing", fmt::join(part.field, ".")));
    }
    out += value->is_string() ? value->get_ref<const std::string&>() : value->dump();
  }
  return out;
}

}  // namespace hk::cli
