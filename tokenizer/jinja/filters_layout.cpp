// Filters for layout: centering, indenting, wrapping, sizes, pretty printing.
#include <fmt/format.h>

#include <cmath>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/filters.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/number_format.h"
#include "tokenizer/jinja/number_parse.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

Value center(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("center", arguments, {"width"});
  const Text text = to_text(input);
  return Value::string(pad(text, count_code_points(text.view()), args.integer(0, 80), " ", Side::kBoth),
                       input.is_markup());
}

Value indent(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("indent", arguments, {"width", "first", "blank"});
  if (!input.is_string()) {
    require_defined(input);
    fail_type(fmt::format("'{}' object cannot be indented", type_name(input)));
  }
  Text margin;
  if (args.has(0) && args[0].is_string()) {
    margin = args[0].text();
  } else {
    margin.append_repeated(" ", static_cast<std::size_t>(std::max<std::int64_t>(0, args.integer(0, 4))),
                           Origin::kTemplate);
  }
  Text source = input.text();
  source.append("\n", Origin::kTemplate);  // so that a final line break survives
  Text out;
  bool first = true;
  for (const Text& line : split_lines(source, false)) {
    if (!first) out.append("\n", Origin::kTemplate);
    if (first ? args.flag(1) : args.flag(2) || !line.empty()) out.append(margin);
    out.append(line);
    first = false;
  }
  return Value::string(std::move(out), input.is_markup());
}

/// Words and the blanks between them, in turn; a word also ends after a hyphen between letters.
std::vector<Text> chunks_of(const Text& line, bool break_on_hyphens) {
  const std::string_view bytes = line.view();
  std::vector<Text> chunks;
  std::size_t at = 0;
  const auto blank = [&](std::size_t i) { return bytes[i] == ' ' || (bytes[i] >= '\t' && bytes[i] <= '\r'); };
  const auto letter = [&](std::size_t i) { return i < bytes.size() && is_letter(decode_at(bytes, i).value); };
  while (at < bytes.size()) {
    std::size_t end = at;
    if (blank(at)) {
      while (end < bytes.size() && blank(end)) ++end;
    } else {
      while (end < bytes.size() && !blank(end)) {
        ++end;
        const bool hyphen = bytes[end - 1] == '-' && end - at > 2;
        if (break_on_hyphens && hyphen && letter(previous_start(bytes, end - 1)) && letter(end)) break;
      }
    }
    chunks.push_back(line.slice(at, end));
    at = end;
  }
  return chunks;
}

bool is_blank(const Text& text) { return !text.empty() && strip(text, Side::kBoth, std::nullopt).empty(); }

void wrap_line(Text& out, const Text& line, std::size_t width, bool break_words, const Text& separator,
               bool break_on_hyphens) {
  auto chunks = chunks_of(line, break_on_hyphens);
  std::size_t next = 0;
  bool first_line = true;
  while (next < chunks.size()) {
    charge_steps(1);
    std::vector<Text> current;
    std::size_t length = 0;
    if (!first_line && is_blank(chunks[next])) ++next;
    for (; next < chunks.size(); ++next) {
      const std::size_t size = count_code_points(chunks[next].view());
      if (length + size > width) break;
      length += size;
      current.push_back(chunks[next]);
    }
    if (next < chunks.size() && count_code_points(chunks[next].view()) > width) {
      const std::size_t room = width > length ? width - length : 1;
      if (break_words) {
        const Text word = chunks[next];
        const std::size_t cut = offset_of(word.view(), room);
        current.push_back(word.slice(0, cut));
        chunks[next] = word.slice(cut, word.size());
      } else if (current.empty()) {
        current.push_back(chunks[next++]);
      }
    }
    if (!current.empty() && is_blank(current.back())) current.pop_back();
    if (current.empty()) continue;
    if (!first_line) out.append(separator);
    for (const Text& chunk : current) out.append(chunk);
    first_line = false;
  }
}

Value word_wrap(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("wordwrap", arguments, {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  const std::int64_t width = args.integer(0, 79);
  if (width <= 0) fail(FailureKind::kValue, fmt::format("invalid width {} (must be > 0)", width));
  if (!input.is_string()) fail_type(fmt::format("'{}' object cannot be wrapped", type_name(input)));
  const Text separator = args.has(2) && !args[2].is_none() ? args.text(2) : Text("\n");
  Text out;
  bool first = true;
  for (const Text& line : split_lines(input.text(), false)) {
    if (!first) out.append(separator);
    first = false;
    wrap_line(out, line, static_cast<std::size_t>(width), args.flag(1, true), separator, args.flag(3, true));
  }
  return Value::string(std::move(out));
}

Value file_size(Runtime&, const Value& input, Arguments& arguments) {
  const Binder args("filesizeformat", arguments, {"binary"});
  require_defined(input);
  if (!is_any_number(input) && !input.is_string()) fail_type(fmt::format("'{}' object is no size", type_name(input)));
  const auto size = input.is_string() ? parse_float(input.view()) : number_of(input);
  if (!size) fail(FailureKind::kValue, "could not convert string to float");
  const double bytes = *size;
  const double base = args.flag(0) ? 1024 : 1000;
  if (bytes == 1) return Value::string("1 Byte");
  if (bytes < base) return Value::string(fmt::format("{:.0f} Bytes", std::trunc(bytes)));
  static constexpr const char* kDecimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  static constexpr const char* kBinary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  double unit = base;
  std::size_t i = 0;
  while (i < 7 && bytes >= unit * base) {
    unit *= base;
    ++i;
  }
  return Value::string(float_digits(bytes / unit, 'f', 1, false) + " " + (args.flag(0) ? kBinary : kDecimal)[i]);
}

/// pprint shows dicts by key; keys of different types stay as they are.
Value with_sorted_dicts(const Value& value) {
  charge_steps(1);
  if (value.is_list() || value.is_tuple()) {
    std::vector<Value> items;
    for (const Value& item : value.items()) items.push_back(with_sorted_dicts(item));
    return value.is_list() ? Value::list(std::move(items)) : Value::tuple(std::move(items));
  }
  if (!value.is_dict()) return value;
  std::vector<Value> keys;
  for (const auto& entry : value.as_dict().entries()) keys.push_back(entry.first);
  try {
    keys = sorted_by(
        keys, [](const Value& key) { return key; }, false);
  } catch (const Failure& failure) {
    if (failure.kind() != FailureKind::kType) throw;
  }
  Dict out;
  for (const Value& key : keys) out.set(key, with_sorted_dicts(*value.as_dict().find(key)));
  return Value::dict(std::move(out));
}

/// One line when it fits, else one item a line, as pprint lays things out.
void pretty(Text& out, const Value& value, std::size_t indent, std::size_t allowance) {
  const Text line = repr(value);
  const bool container = value.is_list() || value.is_tuple() || value.is_dict();
  constexpr std::size_t kWidth = 80;
  if (!container || indent + count_code_points(line.view()) + allowance <= kWidth) return out.append(line);
  const Text margin(fmt::format(",\n{:{}}", "", indent + 1));
  if (!value.is_dict()) {
    const auto& items = value.items();
    out.append(value.is_list() ? "[" : "(", Origin::kTemplate);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out.append(margin);
      pretty(out, items[i], indent + 1, i + 1 < items.size() ? 1 : allowance + 1);
    }
    if (value.is_tuple() && items.size() == 1) out.append(",", Origin::kTemplate);
    return out.append(value.is_list() ? "]" : ")", Origin::kTemplate);
  }
  const auto& entries = value.as_dict().entries();
  out.append("{", Origin::kTemplate);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.append(margin);
    const Text key = repr(entries[i].first);
    out.append(key);
    out.append(": ", Origin::kTemplate);
    pretty(out, entries[i].second, indent + 3 + count_code_points(key.view()),
           i + 1 < entries.size() ? 1 : allowance + 1);
  }
  out.append("}", Origin::kTemplate);
}

Value pretty_print(Runtime&, const Value& input, Arguments& arguments) {
  expect_no_arguments("pprint", arguments);
  Text out;
  pretty(out, with_sorted_dicts(input), 0, 0);
  return Value::string(std::move(out));
}

constexpr FilterEntry kFilters[] = {
    {"center", center},       {"indent", indent}, {"wordwrap", word_wrap}, {"filesizeformat", file_size},
    {"pprint", pretty_print},
};

}  // namespace

std::span<const FilterEntry> layout_filters() { return kFilters; }

}  // namespace hk::tokenizer::jinja
