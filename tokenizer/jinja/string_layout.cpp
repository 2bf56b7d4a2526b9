// String methods for layout: padding, tabs, formatting, encoding.
#include <fmt/format.h>

#include "base/utf8.h"
#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/formatting.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"

namespace hk::tokenizer::jinja {
namespace {

template <Side side>
Value padded(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("center", arguments, {"width", "fillchar"}, 1, true);
  std::string_view fill = " ";
  if (args.has(1)) {
    fill = args.text(1).view();
    if (args[1].as_string().length != 1) fail_type("The fill character must be exactly one character long");
  }
  return Value::string(pad(self.text(), self.as_string().length, args.integer(0, 0), fill, side), self.is_markup());
}

Value zero_filled(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("zfill", arguments, {"width"}, 1, true);
  const Text& text = self.text();
  const std::int64_t width = args.integer(0, 0);
  const auto length = static_cast<std::int64_t>(self.as_string().length);
  if (width <= length) return self;
  const std::size_t sign = !text.empty() && (text.view()[0] == '-' || text.view()[0] == '+') ? 1 : 0;
  Text out = text.slice(0, sign);
  out.append_repeated("0", static_cast<std::size_t>(width - length), Origin::kTemplate);
  out.append(text, sign, text.size());
  return Value::string(std::move(out), self.is_markup());
}

Value tabs_expanded(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("expandtabs", arguments, {"tabsize"});
  const std::int64_t size = args.integer(0, 8);
  const Text& text = self.text();
  Text out;
  std::int64_t column = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text.view(), at);
    if (point.value == '\t') {
      const std::int64_t blanks = size > 0 ? size - column % size : 0;
      out.append_repeated(" ", static_cast<std::size_t>(blanks), text.origin_at(at));
      column += blanks;
    } else {
      out.append(text, at, at + point.size);
      column = point.value == '\n' || point.value == '\r' ? 0 : column + 1;
    }
    at += point.size;
  }
  return Value::string(std::move(out), self.is_markup());
}

Value formatted(Runtime&, const Value& self, Arguments& arguments) {
  return Value::string(format_braces(self.text(), arguments, self.is_markup()), self.is_markup());
}

Value formatted_map(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("format_map", arguments, {"mapping"}, 1, true);
  if (!args[0].is_dict()) fail_type(fmt::format("format_map() argument must be a mapping, not {}", type_name(args[0])));
  Arguments named;
  for (const auto& [key, value] : args[0].as_dict().entries())
    if (key.is_string()) named.named.emplace_back(key.view(), value);
  return Value::string(format_braces(self.text(), named, self.is_markup()), self.is_markup());
}

Value encoded(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("encode", arguments, {"encoding", "errors"});
  if (args.has(0)) {
    std::string name;
    for (const char c : args.text(0).view())
      if (c != '-' && c != '_') name += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    const bool ascii = name == "ascii" || name == "usascii";
    if (name != "utf8" && !ascii) fail(FailureKind::kValue, "encodings other than utf-8 and ascii are not supported");
    if (ascii && !self.as_string().single_byte()) fail(FailureKind::kValue, "'ascii' codec can't encode characters");
  }
  if (!is_valid_utf8(self.view())) fail(FailureKind::kValue, "'utf-8' codec can't encode: surrogates not allowed");
  return Value::object(std::make_shared<Bytes>(self.text()));
}

constexpr MethodEntry kMethods[] = {
    {"center", padded<Side::kBoth>}, {"ljust", padded<Side::kLeft>},
    {"rjust", padded<Side::kRight>}, {"zfill", zero_filled},
    {"expandtabs", tabs_expanded},   {"format", formatted},
    {"format_map", formatted_map},   {"encode", encoded},
};

}  // namespace

std::span<const MethodEntry> string_layout() { return kMethods; }

}  // namespace hk::tokenizer::jinja
