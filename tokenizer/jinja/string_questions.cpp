// String methods that answer something about a string: find, count, startswith, is...
#include <fmt/format.h>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

/// The part of a string that start and end arguments (in code points) leave.
struct Window {
  std::string_view bytes;  ///< empty when the bounds cross
  std::int64_t start = 0;  ///< of the window in code points
  bool crossed = false;    ///< start lies behind the end: not even the empty string is found
};

Window window_of(const Value& self, const Binder& args) {
  const String& string = self.as_string();
  const auto length = static_cast<std::int64_t>(string.length);
  const auto bound = [&](std::size_t index, std::int64_t absent) {
    if (!args.has(index) || args[index].is_none()) return absent;
    std::int64_t at = args.integer(index, absent);
    if (at < 0) at = at < -length ? 0 : at + length;
    return at;
  };
  const std::int64_t start = bound(1, 0), end = std::min(bound(2, length), length);
  if (start > end) return {{}, start, true};
  const auto byte = [&](std::int64_t point) {
    const auto index = static_cast<std::size_t>(point);
    return string.single_byte() ? index : offset_of(string.view(), index);
  };
  const std::size_t from = byte(start);
  return {string.view().substr(from, byte(end) - from), start, false};
}

template <bool from_right, bool must_find>
Value found(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("find", arguments, {"sub", "start", "end"}, 1, true);
  const std::string_view wanted = args.text(0).view();
  const Window window = window_of(self, args);
  const std::size_t at = window.crossed ? kNotFound
                         : from_right   ? find_last_text(window.bytes, wanted)
                                        : find_text(window.bytes, wanted);
  if (at == kNotFound) {
    if (must_find) fail(FailureKind::kValue, "substring not found");
    return Value::integer(-1);
  }
  return Value::integer(window.start + static_cast<std::int64_t>(count_code_points(window.bytes.substr(0, at))));
}

Value counted(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("count", arguments, {"sub", "start", "end"}, 1, true);
  const std::string_view wanted = args.text(0).view();
  const Window window = window_of(self, args);
  if (window.crossed) return Value::integer(0);
  if (wanted.empty()) return Value::integer(static_cast<std::int64_t>(count_code_points(window.bytes)) + 1);
  std::int64_t count = 0;
  for (std::size_t at = 0; (at = find_text(window.bytes, wanted, at)) != kNotFound; at += wanted.size()) ++count;
  return Value::integer(count);
}

template <bool at_start>
Value affixed(Runtime&, const Value& self, Arguments& arguments) {
  const char* name = at_start ? "startswith" : "endswith";
  const Binder args(name, arguments, {"prefix", "start", "end"}, 1, true);
  const Window window = window_of(self, args);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string())
      fail_type(fmt::format("{} first arg must be str or a tuple of str, not {}", name, type_name(affix)));
    if (window.crossed) return false;
    return at_start ? window.bytes.starts_with(affix.view()) : window.bytes.ends_with(affix.view());
  };
  if (!args[0].is_tuple()) return Value::boolean(matches(args[0]));
  for (const Value& affix : args[0].items())
    if (matches(affix)) return Value::boolean(true);
  return Value::boolean(false);
}

template <bool (*holds)(char32_t)>
Value all_are(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("str method", arguments);
  const std::string_view bytes = self.view();
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint point = decode_at(bytes, at);
    if (!holds(point.value)) return Value::boolean(false);
    at += point.size;
  }
  return Value::boolean(!bytes.empty());
}

bool is_alphanumeric(char32_t value) {
  return is_letter(value) || is_decimal(value) || is_digit(value) || is_numeric(value);
}

/// No cased character of the other kind, and at least one of this.
template <bool upper>
Value in_case(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("str method", arguments);
  bool any = false;
  for (std::size_t at = 0; at < self.view().size();) {
    const CodePoint point = decode_at(self.view(), at);
    if ((upper ? is_lower(point.value) : is_upper(point.value)) || is_title(point.value)) return Value::boolean(false);
    any = any || (upper ? is_upper(point.value) : is_lower(point.value));
    at += point.size;
  }
  return Value::boolean(any);
}

Value in_title_case(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("istitle", arguments);
  bool inside = false, any = false;
  for (std::size_t at = 0; at < self.view().size();) {
    const CodePoint point = decode_at(self.view(), at);
    const bool capital = is_upper(point.value) || is_title(point.value), small = is_lower(point.value);
    if ((capital && inside) || (small && !inside)) return Value::boolean(false);
    inside = capital || small;
    any = any || inside;
    at += point.size;
  }
  return Value::boolean(any);
}

Value only_ascii(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("isascii", arguments);
  for (const char c : self.view())
    if (static_cast<unsigned char>(c) >= 0x80) return Value::boolean(false);
  return Value::boolean(true);
}

Value printable(Runtime& runtime, const Value& self, Arguments& arguments) {
  if (self.view().empty()) return Value::boolean(true);
  return all_are<is_printable>(runtime, self, arguments);
}

Value identifier(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("isidentifier", arguments);
  const std::string_view bytes = self.view();
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint point = decode_at(bytes, at);
    if (at == 0 ? !is_identifier_start(point.value) : !is_identifier_part(point.value)) return Value::boolean(false);
    at += point.size;
  }
  return Value::boolean(!bytes.empty());
}

constexpr MethodEntry kMethods[] = {
    {"find", found<false, false>},
    {"rfind", found<true, false>},
    {"index", found<false, true>},
    {"rindex", found<true, true>},
    {"count", counted},
    {"startswith", affixed<true>},
    {"endswith", affixed<false>},
    {"isalnum", all_are<is_alphanumeric>},
    {"isalpha", all_are<is_letter>},
    {"isascii", only_ascii},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isidentifier", identifier},
    {"islower", in_case<false>},
    {"isnumeric", all_are<is_numeric>},
    {"isprintable", printable},
    {"isspace", all_are<is_space>},
    {"istitle", in_title_case},
    {"isupper", in_case<true>},
};

}  // namespace

std::span<const MethodEntry> string_questions() { return kMethods; }

}  // namespace hk::tokenizer::jinja
