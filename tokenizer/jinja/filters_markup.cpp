// Filters that know HTML or URLs.
#include <fmt/format.h>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"

namespace hk::tokenizer::jinja {
namespace {

Value safe(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("safe", arguments);
  return Value::string(to_text(input), true);
}

Value escape(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("escape", arguments);
  return escaped(input);
}

Value force_escape(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("forceescape", arguments);
  return Value::string(escape_html(to_text(input)), true);
}

/// Removes everything from `open` to the next `close`.
Text without(const Text& text, std::string_view open, std::string_view close) {
  Text out;
  std::size_t kept = 0;
  for (;;) {
    const std::size_t begin = find_text(text.view(), open, kept);
    const std::size_t end = begin == kNotFound ? kNotFound : find_text(text.view(), close, begin + open.size());
    if (end == kNotFound) break;
    out.append(text, kept, begin);
    kept = end + close.size();
  }
  out.append(text, kept, text.size());
  return out;
}

/// Entities that escape() writes, a few common names, and numbers.
Text unescape(const Text& text) {
  static constexpr std::pair<std::string_view, std::string_view> kNamed[] = {
      {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}, {"nbsp", "\xC2\xA0"}};
  const std::string_view bytes = text.view();
  Text out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t begin = std::min(bytes.find('&', at), bytes.size());
    out.append(text, at, begin);
    at = begin;
    if (at == bytes.size()) break;
    const std::size_t end = bytes.substr(at, 12).find(';');
    std::string plain;
    if (end != std::string_view::npos && end > 1) {
      const std::string_view name = bytes.substr(at + 1, end - 1);
      for (const auto& [entity, character] : kNamed)
        if (entity == name) plain = character;
      if (name[0] == '#' && name.size() > 1) {
        const bool hexadecimal = name[1] == 'x' || name[1] == 'X';
        const std::string digits(name.substr(hexadecimal ? 2 : 1));
        const bool valid = !digits.empty() && digits.find_first_not_of(hexadecimal ? "0123456789abcdefABCDEF"
                                                                                   : "0123456789") == std::string::npos;
        const unsigned long code = valid ? std::strtoul(digits.c_str(), nullptr, hexadecimal ? 16 : 10) : 0;
        if (code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF))
          encode_to(plain, static_cast<char32_t>(code));
      }
    }
    if (plain.empty()) {
      out.append(text, at, at + 1);
      ++at;
    } else {
      out.append(plain, text.origin_at(at));
      at += end + 1;
    }
  }
  return out;
}

Value strip_tags(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("striptags", arguments);
  const Text bare = without(without(to_text(input), "<!--", "-->"), "<", ">");
  Text out;
  for (const Text& word : split_blank(bare, -1)) {
    if (!out.empty()) out.append(" ", Origin::kTemplate);
    out.append(word);
  }
  return Value::string(unescape(out));
}

Text url_quoted(const Value& value, bool in_query) {
  const Text text = to_text(value);
  std::string out;
  for (const char c : text.view()) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !in_query)) {
      out += c;
    } else if (c == ' ' && in_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return Text(std::move(out), text.blended());
}

Value url_encode(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("urlencode", arguments);
  if (input.is_string() || !is_iterable(input)) return Value::string(url_quoted(input, false));
  std::vector<Value> pairs;
  if (input.is_dict()) {
    for (const auto& [key, value] : input.as_dict().entries()) pairs.push_back(Value::tuple({key, value}));
  } else {
    pairs = collect(input);
  }
  Text out;
  for (const Value& pair : pairs) {
    const auto two = collect(pair);
    if (two.size() != 2) fail(FailureKind::kValue, "urlencode expects pairs of name and value");
    if (!out.empty()) out.append("&", Origin::kTemplate);
    out.append(url_quoted(two[0], true));
    out.append("=", Origin::kTemplate);
    out.append(url_quoted(two[1], true));
  }
  return Value::string(std::move(out));
}

Value xml_attributes(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Binder args("xmlattr", arguments, {"autospace"});
  if (!input.is_dict()) fail_type(fmt::format("'{} object' has no attribute 'items'", type_name(input)));
  Text out;
  for (const auto& [key, value] : input.as_dict().entries()) {
    if (value.is_none() || value.is_undefined()) continue;
    const Text name = to_text(key);
    if (name.view().find_first_of(" \t\n\r\f/>=") != std::string_view::npos)
      fail(FailureKind::kValue, fmt::format("Invalid character in attribute name: {}", repr(key).view()));
    if (!out.empty() || args.flag(0, true)) out.append(" ", Origin::kTemplate);
    out.append(escaped(key).text());
    out.append("=\"", Origin::kTemplate);
    out.append(escaped(value).text());
    out.append("\"", Origin::kTemplate);
  }
  return Value::string(std::move(out), runtime.autoescape);
}

constexpr FilterEntry kFilters[] = {
    {"safe", safe},
    {"escape", escape},
    {"e", escape},
    {"forceescape", force_escape},
    {"striptags", strip_tags},
    {"urlencode", url_encode},
    {"xmlattr", xml_attributes},
};

}  // namespace

std::span<const FilterEntry> markup_filters() { return kFilters; }

}  // namespace hk::tokenizer::jinja
