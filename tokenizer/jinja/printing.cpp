// str() and repr() of Python.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/meter.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

std::string quoted(std::string_view bytes) {
  const bool has_single = bytes.find('\'') != std::string_view::npos;
  const char quote = has_single && bytes.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint point = decode_at(bytes, at);
    if (point.value == static_cast<unsigned char>(quote) || point.value == '\\') {
      out += '\\';
      out += static_cast<char>(point.value);
    } else if (point.value == '\n') {
      out += "\\n";
    } else if (point.value == '\r') {
      out += "\\r";
    } else if (point.value == '\t') {
      out += "\\t";
    } else if (is_printable(point.value)) {
      out += bytes.substr(at, point.size);
    } else if (point.value < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(point.value));
    } else if (point.value < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point.value));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(point.value));
    }
    at += point.size;
  }
  out += quote;
  return out;
}

void append_repr(Text& out, const Value& value);

void append_plain(Text& out, std::string_view text) { out.append(text, Origin::kTemplate); }

void append_items(Text& out, const std::vector<Value>& items) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) append_plain(out, ", ");
    first = false;
    append_repr(out, item);
  }
}

void append_repr(Text& out, const Value& value) {
  charge_steps(1);
  switch (value.type()) {
    case Value::Type::kString: {
      const String& string = value.as_string();
      if (string.markup) append_plain(out, "Markup(");
      out.append(quoted(string.view()), string.text.blended());
      if (string.markup) append_plain(out, ")");
      return;
    }
    case Value::Type::kUndefined:
      return append_plain(out, "Undefined");
    case Value::Type::kList:
      append_plain(out, "[");
      append_items(out, value.items());
      return append_plain(out, "]");
    case Value::Type::kTuple:
      append_plain(out, "(");
      append_items(out, value.items());
      return append_plain(out, value.items().size() == 1 ? ",)" : ")");
    case Value::Type::kDict: {
      append_plain(out, "{");
      bool first = true;
      for (const auto& [key, item] : value.as_dict().entries()) {
        if (!first) append_plain(out, ", ");
        first = false;
        append_repr(out, key);
        append_plain(out, ": ");
        append_repr(out, item);
      }
      return append_plain(out, "}");
    }
    case Value::Type::kObject:
      return out.append(value.as_object()->repr());
    default:
      return append_text(out, value);
  }
}

}  // namespace

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // Shortest digits that read back as the same double, laid out as Python does: plain from 1e-4 up to 1e16.
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t mark = text.find('e');
  std::string_view mantissa = text.substr(0, mark);
  std::string out;
  if (mantissa.front() == '-') {
    out = "-";
    mantissa.remove_prefix(1);
  }
  int exponent = 0;
  std::string_view exponent_text = text.substr(mark + 1);
  if (exponent_text.front() == '+') exponent_text.remove_prefix(1);
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  std::string digits(mantissa.substr(0, 1));
  if (mantissa.size() > 2) digits += mantissa.substr(2);
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out.append(".").append(digits, 1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0)
    return fmt::format("{}0.{}{}", out, std::string(static_cast<std::size_t>(-exponent - 1), '0'), digits);
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return fmt::format("{}{}{}.0", out, digits, std::string(whole - digits.size(), '0'));
  return fmt::format("{}{}.{}", out, digits.substr(0, whole), digits.substr(whole));
}

void append_text(Text& out, const Value& value) {
  switch (value.type()) {
    case Value::Type::kNone:
      return append_plain(out, "None");
    case Value::Type::kUndefined:
      return;
    case Value::Type::kBool:
      return append_plain(out, value.as_bool() ? "True" : "False");
    case Value::Type::kInt:
      return append_plain(out, fmt::format_int(value.as_int()).c_str());
    case Value::Type::kFloat:
      return append_plain(out, float_text(value.as_number()));
    case Value::Type::kString:
      return out.append(value.text());
    default:
      return out.append(repr(value));
  }
}

Text to_text(const Value& value) {
  if (value.is_string()) return value.text();
  Text out;
  append_text(out, value);
  return out;
}

Text repr(const Value& value) {
  Text out;
  append_repr(out, value);
  // The brackets and quotes around data count as data: one span instead of many.
  return out.holds_data() ? out.with_origin(Origin::kData) : out;
}

std::string type_name(const Value& value) {
  switch (value.type()) {
    case Value::Type::kNone:
      return "NoneType";
    case Value::Type::kUndefined:
      return "Undefined";
    case Value::Type::kBool:
      return "bool";
    case Value::Type::kInt:
      return "int";
    case Value::Type::kFloat:
      return "float";
    case Value::Type::kString:
      return value.is_markup() ? "Markup" : "str";
    case Value::Type::kList:
      return "list";
    case Value::Type::kTuple:
      return "tuple";
    case Value::Type::kDict:
      return "dict";
    case Value::Type::kObject:
      return value.as_object()->type_name();
  }
  return "object";
}

Text escape_html(const Text& text) {
  const std::string_view bytes = text.view();
  Text out;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* entity = nullptr;
    switch (bytes[i]) {
      case '&':
        entity = "&amp;";
        break;
      case '<':
        entity = "&lt;";
        break;
      case '>':
        entity = "&gt;";
        break;
      case '\'':
        entity = "&#39;";
        break;
      case '"':
        entity = "&#34;";
        break;
      default:
        continue;
    }
    out.append(text, kept, i);
    out.append(entity, text.origin_at(i));
    kept = i + 1;
  }
  out.append(text, kept, bytes.size());
  return out;
}

Value escaped(const Value& value) {
  if (value.is_markup()) return value;
  return Value::string(escape_html(to_text(value)), true);
}

}  // namespace hk::tokenizer::jinja
