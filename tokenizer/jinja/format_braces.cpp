// str.format and its specification language.
#include <fmt/format.h>

#include <cmath>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/formatting.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/number_format.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"

namespace hk::tokenizer::jinja {
namespace {

struct Specification {
  std::string fill = " ";
  char align = 0;
  char sign = '-';
  bool alternate = false, zero = false;
  std::int64_t width = 0, precision = -1;
  char grouping = 0;
  char kind = 0;
};

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

std::int64_t read_number(std::string_view text, std::size_t& at) {
  std::int64_t number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    number = number * 10 + (text[at] - '0');
    if (number > kMaxFormatWidth) fail(FailureKind::kValue, "Too many decimal digits in format string");
  }
  return number;
}

Specification parse_specification(std::string_view text) {
  Specification spec;
  std::size_t at = 0;
  const auto accept = [&](char wanted) {
    if (at >= text.size() || text[at] != wanted) return false;
    ++at;
    return true;
  };
  const std::size_t first = text.empty() ? 0 : decode_at(text, 0).size;
  if (first < text.size() && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  spec.alternate = accept('#');
  if (accept('0')) {
    spec.zero = true;
    if (spec.align == 0) {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
  }
  spec.width = read_number(text, at);
  if (accept(',')) spec.grouping = ',';
  if (accept('_')) spec.grouping = '_';
  if (accept('.')) {
    const std::size_t start = at;
    spec.precision = read_number(text, at);
    if (at == start) fail(FailureKind::kValue, "Format specifier missing precision");
  }
  if (at < text.size()) spec.kind = text[at++];
  if (at < text.size()) fail(FailureKind::kValue, fmt::format("Invalid format specifier '{}'", text));
  return spec;
}

Text align_text(const Specification& spec, Text body, char fallback) {
  const char align = spec.align == 0 ? fallback : spec.align;
  const std::size_t length = count_code_points(body.view());
  if (spec.width <= static_cast<std::int64_t>(length)) return body;
  const std::size_t missing = static_cast<std::size_t>(spec.width) - length;
  const std::size_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  Text out;
  out.append_repeated(spec.fill, left, Origin::kTemplate);
  out.append(body);
  out.append_repeated(spec.fill, missing - left, Origin::kTemplate);
  return out;
}

Text format_string(const Specification& spec, Text text) {
  if (spec.kind != 0 && spec.kind != 's')
    fail(FailureKind::kValue, fmt::format("Unknown format code '{}' for object of type 'str'", spec.kind));
  if (spec.align == '=' && !spec.zero)
    fail(FailureKind::kValue, "'=' alignment not allowed in string format specifier");
  if (spec.precision >= 0) text = text.slice(0, offset_of(text.view(), static_cast<std::size_t>(spec.precision)));
  Specification aligned = spec;
  if (aligned.align == '=') aligned.align = '<';
  return align_text(aligned, std::move(text), '<');
}

Text format_number(const Specification& spec, bool negative, std::string_view prefix, const std::string& digits) {
  const std::string_view sign = negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
  const std::string head = fmt::format("{}{}", sign, prefix);
  if (spec.align != '=') return align_text(spec, Text(head + digits), '>');
  Text out(head);
  const std::size_t size = head.size() + digits.size();
  if (spec.width > static_cast<std::int64_t>(size))
    out.append_repeated(spec.fill, static_cast<std::size_t>(spec.width) - size, Origin::kTemplate);
  out.append(digits, Origin::kTemplate);
  return out;
}

Text format_float(const Specification& spec, double value) {
  std::string digits;
  switch (spec.kind) {
    case 0:
      if (spec.precision < 0) {
        digits = float_text(std::fabs(value));
      } else {
        digits = float_digits(value, 'g', std::max<std::int64_t>(1, spec.precision), spec.alternate);
        if (digits.find_first_of(".enf") == std::string::npos) digits += ".0";
      }
      break;
    case 'n':
      digits = float_digits(value, 'g', spec.precision, spec.alternate);
      break;
    case '%':
      digits = float_digits(value * 100, 'f', spec.precision, spec.alternate) + "%";
      break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      digits = float_digits(value, spec.kind, spec.precision, spec.alternate);
      break;
    default:
      fail(FailureKind::kValue, fmt::format("Unknown format code '{}' for object of type 'float'", spec.kind));
  }
  if (spec.grouping != 0) digits = grouped(digits, spec.grouping, 3);
  return format_number(spec, is_negative(Value::number(value)), "", digits);
}

Text format_integer(const Specification& spec, const Value& value) {
  unsigned base = 10;
  std::string_view prefix;
  switch (spec.kind) {
    case 0:
    case 'd':
    case 'n':
      break;
    case 'b':
      base = 2, prefix = "0b";
      break;
    case 'o':
      base = 8, prefix = "0o";
      break;
    case 'x':
      base = 16, prefix = "0x";
      break;
    case 'X':
      base = 16, prefix = "0X";
      break;
    case 'c': {
      if (!value.is_integral() || value.as_int() < 0 || value.as_int() > 0x10FFFF)
        fail(FailureKind::kOverflow, "%c arg not in range(0x110000)");
      std::string one;
      encode_to(one, static_cast<char32_t>(value.as_int()));
      return align_text(spec, Text(one), '<');
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%':
      return format_float(spec, number_of(value));
    default:
      fail(FailureKind::kValue, fmt::format("Unknown format code '{}' for object of type 'int'", spec.kind));
  }
  if (spec.precision >= 0) fail(FailureKind::kValue, "Precision not allowed in integer format specifier");
  std::string digits = integer_digits(value, base, spec.kind == 'X');
  if (spec.grouping != 0) {
    std::string out;
    for (std::size_t i = 0, size = base == 10 ? 3 : 4; i < digits.size(); ++i) {
      if (i > 0 && (digits.size() - i) % size == 0) out += spec.grouping;
      out += digits[i];
    }
    digits = out;
  }
  return format_number(spec, is_negative(value), spec.alternate ? prefix : "", digits);
}

class BraceFormatter {
 public:
  BraceFormatter(const Arguments& arguments, bool markup) : arguments_(arguments), markup_(markup) {}

  Text run(const Text& format, int depth) {
    if (depth > 2) fail(FailureKind::kValue, "Max string recursion exceeded");
    const std::string_view bytes = format.view();
    Text out;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
      out.append(format, at, brace);
      if (brace == bytes.size()) break;
      at = brace + 1;
      if (at < bytes.size() && bytes[at] == bytes[brace]) {
        out.append(format, brace, at);
        ++at;
      } else if (bytes[brace] == '}') {
        fail(FailureKind::kValue, "Single '}' encountered in format string");
      } else {
        field(out, format, at, depth);
      }
    }
    return out;
  }

 private:
  void field(Text& out, const Text& format, std::size_t& at, int depth) {
    const std::string_view bytes = format.view();
    const std::size_t start = at;
    std::size_t colon = std::string_view::npos, mark = std::string_view::npos;
    for (int open = 1;; ++at) {
      if (at >= bytes.size()) fail(FailureKind::kValue, "expected '}' before end of string");
      const char c = bytes[at];
      if (c == '{') ++open;
      if (c == '}' && --open == 0) break;
      if (c == '[' && colon == std::string_view::npos) {
        at = bytes.find(']', at);
        if (at == std::string_view::npos) fail(FailureKind::kValue, "expected '}' before end of string");
        continue;
      }
      if (open == 1 && colon == std::string_view::npos) {
        if (c == ':') colon = at;
        if (c == '!' && mark == std::string_view::npos) mark = at;
      }
    }
    const std::size_t end = at++;
    const std::size_t name_end = std::min({end, colon, mark});
    Value value = look_up(bytes.substr(start, name_end - start));
    if (mark < std::min(end, colon)) {
      const std::string_view conversion = bytes.substr(mark + 1, std::min(end, colon) - mark - 1);
      if (conversion == "r" || conversion == "a")
        value = Value::string(repr(value));
      else if (conversion == "s")
        value = Value::string(to_text(value));
      else
        fail(FailureKind::kValue, fmt::format("Unknown conversion specifier '{}'", conversion));
    }
    const Text specification = colon < end ? run(format.slice(colon + 1, end), depth + 1) : Text();
    out.append(format_value(value, specification, markup_));
  }

  Value look_up(std::string_view name) {
    const std::size_t first_end = std::min(name.find_first_of(".["), name.size());
    Value value = first(name.substr(0, first_end));
    for (std::size_t at = first_end; at < name.size();) {
      if (name[at] == '.') {
        const std::size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) fail(FailureKind::kValue, "Empty attribute in format string");
        value = get_attribute(value, name.substr(at + 1, end - at - 1));
        at = end;
      } else if (name[at] == '[') {
        const std::size_t end = name.find(']', at);
        if (end == std::string_view::npos || end == at + 1)
          fail(FailureKind::kValue, "Empty attribute in format string");
        const std::string_view key = name.substr(at + 1, end - at - 1);
        const bool digits = key.find_first_not_of("0123456789") == std::string_view::npos;
        value = get_item(value, digits ? integer_from_digits(key, 10) : Value::string(key));
        at = end + 1;
      } else {
        fail(FailureKind::kValue, "Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value first(std::string_view name) {
    const bool digits = name.find_first_not_of("0123456789") == std::string_view::npos;
    if (!digits) {
      for (const auto& [key, value] : arguments_.named)
        if (key == name) return value;
      fail(FailureKind::kValue, fmt::format("KeyError: '{}'", name));
    }
    std::size_t index = 0;
    if (name.empty()) {
      if (manual_) fail(FailureKind::kValue, "cannot switch from manual field specification to automatic numbering");
      automatic_ = true;
      index = next_++;
    } else {
      if (automatic_) fail(FailureKind::kValue, "cannot switch from automatic numbering to manual field specification");
      manual_ = true;
      for (const char c : name) index = std::min<std::size_t>(index * 10 + static_cast<std::size_t>(c - '0'), 1 << 20);
    }
    if (index >= arguments_.positional.size())
      fail(FailureKind::kValue, "Replacement index out of range for positional args tuple");
    return arguments_.positional[index];
  }

  const Arguments& arguments_;
  bool markup_;
  bool automatic_ = false, manual_ = false;
  std::size_t next_ = 0;
};

Text format_plain(const Value& value, const Text& specification) {
  if (specification.empty()) return to_text(value);
  const std::string_view text = specification.view();
  if (value.is_string()) return format_string(parse_specification(text), value.text());
  if (value.is_float()) return format_float(parse_specification(text), value.as_number());
  if (is_any_integer(value)) return format_integer(parse_specification(text), value);
  fail_type(fmt::format("unsupported format string passed to {}.__format__", type_name(value)));
}

}  // namespace

Text format_value(const Value& value, const Text& specification, bool markup) {
  if (markup && value.is_markup()) return value.text();
  Text out = format_plain(value, specification);
  return markup ? escape_html(out) : out;
}

Text format_braces(const Text& format, const Arguments& arguments, bool markup) {
  return BraceFormatter(arguments, markup).run(format, 1);
}

}  // namespace hk::tokenizer::jinja
