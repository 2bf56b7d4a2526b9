// Filters that change a text: case, trimming, replacing, cutting.
#include <fmt/format.h>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/formatting.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

/// The value as text, markup staying markup.
Value soft(const Value& value) { return value.is_string() ? value : Value::string(to_text(value)); }

template <Text (*map)(const Text&)>
Value mapped(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("filter", arguments);
  const Value text = soft(input);
  return Value::string(map(text.text()), text.is_markup());
}

/// Capital after blanks, hyphens and opening brackets: differs from str.title, which also capitalizes after
/// apostrophes.
Text title_case(const Text& text) {
  const std::string_view bytes = text.view();
  Text out;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto is_break = [&](const CodePoint& point) {
      return is_space(point.value) ||
             (point.value < 0x80 &&
              std::string_view("-({[<").find(static_cast<char>(point.value)) != std::string_view::npos);
    };
    std::size_t end = at;
    const bool breaks = is_break(decode_at(bytes, at));
    while (end < bytes.size() && is_break(decode_at(bytes, end)) == breaks) end += decode_at(bytes, end).size;
    const std::size_t first = at + decode_at(bytes, at).size;
    out.append(to_upper(text.slice(at, first)));
    out.append(to_lower(text.slice(first, end)));
    at = end;
  }
  return out;
}

Value trim(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("trim", arguments, {"chars"});
  const Value text = soft(input);
  std::optional<std::string_view> characters;
  if (args.has(0) && !args[0].is_none()) characters = args.text(0).view();
  return Value::string(strip(text.text(), Side::kBoth, characters), text.is_markup());
}

Value replace_filter(Runtime& runtime, const Value& input, Arguments& arguments) {
  const Binder args("replace", arguments, {"old", "new", "count"}, 2);
  const std::int64_t count = args.has(2) && args[2].is_none() ? -1 : args.integer(2, -1);
  if (!runtime.autoescape) return Value::string(replace(to_text(input), to_text(args[0]), to_text(args[1]), count));
  const bool escape = !input.is_markup() && (args[0].is_markup() || args[1].is_markup());
  const Value text = escape ? escaped(input) : soft(input);
  const Text to = text.is_markup() ? escaped(args[1]).text() : to_text(args[1]);
  return Value::string(replace(text.text(), to_text(args[0]), to, count), text.is_markup());
}

Value string_filter(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("string", arguments);
  return soft(input);
}

Value format_filter(Runtime&, const Value& input, Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail(FailureKind::kFilterArgument, "can't handle positional and keyword arguments at the same time");
  const Value text = soft(input);
  Value given = Value::tuple(arguments.positional);
  if (!arguments.named.empty()) {
    Dict named;
    for (auto& [name, value] : arguments.named) named.set(name, value);
    given = Value::dict(std::move(named));
  }
  return Value::string(format_percent(text.text(), given, text.is_markup()), text.is_markup());
}

Value truncate(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("truncate", arguments, {"length", "killwords", "end", "leeway"});
  const std::int64_t length = args.integer(0, 255);
  const Text end = args.has(2) ? args.text(2) : Text("...");
  const std::int64_t leeway = args.has(3) && args[3].is_none() ? 5 : args.integer(3, 5);
  const auto end_length = static_cast<std::int64_t>(count_code_points(end.view()));
  if (length < end_length)
    fail(FailureKind::kFilterArgument, fmt::format("expected length >= {}, got {}", end_length, length));
  if (leeway < 0) fail(FailureKind::kFilterArgument, fmt::format("expected leeway >= 0, got {}", leeway));
  const std::int64_t have = length_of(input);
  if (have <= length || have - length <= leeway) return input;
  if (!input.is_string()) fail_type(fmt::format("object of type '{}' cannot be truncated", type_name(input)));
  const Text& text = input.text();
  Text out = text.slice(0, offset_of(text.view(), static_cast<std::size_t>(length - end_length)));
  if (!args.flag(1)) out = split_right(out, " ", 1).front();
  out.append(end);
  return Value::string(std::move(out), input.is_markup());
}

Value word_count(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("wordcount", arguments);
  const Text text = to_text(input);
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text.view(), at);
    const bool word = point.value == '_' || is_letter(point.value) || is_numeric(point.value) || is_digit(point.value);
    count += word && !inside;
    inside = word;
    at += point.size;
  }
  return Value::integer(count);
}

constexpr FilterEntry kFilters[] = {
    {"upper", mapped<to_upper>},
    {"lower", mapped<to_lower>},
    {"capitalize", mapped<to_capitalized>},
    {"title", mapped<title_case>},
    {"trim", trim},
    {"replace", replace_filter},
    {"string", string_filter},
    {"format", format_filter},
    {"truncate", truncate},
    {"wordcount", word_count},
};

}  // namespace

std::span<const FilterEntry> text_filters() { return kFilters; }

}  // namespace hk::tokenizer::jinja
