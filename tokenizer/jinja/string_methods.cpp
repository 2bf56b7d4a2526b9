// String methods that give other strings or lists of strings: case, stripping, replacing, splitting, joining.
#include <fmt/format.h>

#include "tokenizer/jinja/arguments.h"
#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/integer.h"
#include "tokenizer/jinja/methods.h"
#include "tokenizer/jinja/operations.h"
#include "tokenizer/jinja/strings.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

Value like(const Value& self, Text text) { return Value::string(std::move(text), self.is_markup()); }

/// Text of an argument; markup escapes what is put into it.
Text argument_text(const Value& self, const Binder& args, std::size_t index) {
  const Text& text = args.text(index);
  return self.is_markup() && !args[index].is_markup() ? escape_html(text) : text;
}

template <Text (*map)(const Text&)>
Value mapped(Runtime&, const Value& self, Arguments& arguments) {
  expect_no_arguments("str method", arguments);
  return like(self, map(self.text()));
}

template <Side side>
Value stripped(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("strip", arguments, {"chars"}, 0, true);
  std::optional<std::string_view> characters;
  if (args.has(0) && !args[0].is_none()) characters = args.text(0).view();
  return like(self, strip(self.text(), side, characters));
}

Value replaced(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("replace", arguments, {"old", "new", "count"}, 2, true);
  return like(self, replace(self.text(), args.text(0), argument_text(self, args, 1), args.integer(2, -1)));
}

Value list_of(const Value& self, std::vector<Text> parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (Text& part : parts) items.push_back(like(self, std::move(part)));
  return Value::list(std::move(items));
}

template <bool from_right>
Value divided(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("split", arguments, {"sep", "maxsplit"});
  const std::int64_t limit = args.integer(1, -1);
  if (!args.has(0) || args[0].is_none())
    return list_of(self, from_right ? split_blank_right(self.text(), limit) : split_blank(self.text(), limit));
  const std::string_view separator = args.text(0).view();
  if (separator.empty()) fail(FailureKind::kValue, "empty separator");
  return list_of(self, from_right ? split_right(self.text(), separator, limit) : split(self.text(), separator, limit));
}

Value lines(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("splitlines", arguments, {"keepends"});
  return list_of(self, split_lines(self.text(), args.flag(0)));
}

template <bool from_right>
Value partitioned(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("partition", arguments, {"sep"}, 1, true);
  const Text& text = self.text();
  const Text& separator = args.text(0);
  if (separator.empty()) fail(FailureKind::kValue, "empty separator");
  const std::size_t found =
      from_right ? find_last_text(text.view(), separator.view()) : find_text(text.view(), separator.view());
  if (found == kNotFound) {
    if (from_right) return Value::tuple({like(self, Text()), like(self, Text()), self});
    return Value::tuple({self, like(self, Text()), like(self, Text())});
  }
  const std::size_t after = found + separator.size();
  return Value::tuple({like(self, text.slice(0, found)), like(self, text.slice(found, after)),
                       like(self, text.slice(after, text.size()))});
}

Value joined(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("join", arguments, {"iterable"}, 1, true);
  Text out;
  const auto iterator = iterate(args[0]);
  std::size_t index = 0;
  bool markup = self.is_markup();
  for (Value item; iterator->next(item); ++index) {
    charge_steps(1);
    if (index > 0) out.append(self.text());
    if (markup) {
      out.append(escaped(item).text());
      continue;
    }
    if (!item.is_string())
      fail_type(fmt::format("sequence item {}: expected str instance, {} found", index, type_name(item)));
    out.append(item.text());
  }
  return Value::string(std::move(out), markup);
}

Value without_prefix(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("removeprefix", arguments, {"prefix"}, 1, true);
  const std::string_view prefix = args.text(0).view();
  const Text& text = self.text();
  return like(self, text.view().starts_with(prefix) ? text.slice(prefix.size(), text.size()) : text);
}

Value without_suffix(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("removesuffix", arguments, {"suffix"}, 1, true);
  const std::string_view suffix = args.text(0).view();
  const Text& text = self.text();
  return like(self, text.view().ends_with(suffix) ? text.slice(0, text.size() - suffix.size()) : text);
}

/// One-character keys become numbers, as str.translate wants them.
Value make_translation(Runtime&, const Value&, Arguments& arguments) {
  const Binder args("maketrans", arguments, {"x", "y", "z"}, 1, true);
  Dict out;
  const auto code = [](std::string_view one) {
    return Value::integer(static_cast<std::int64_t>(decode_at(one, 0).value));
  };
  if (!args.has(1)) {
    if (!args[0].is_dict()) fail_type("if you give only one argument to maketrans it must be a dict");
    for (const auto& [key, value] : args[0].as_dict().entries()) {
      if (key.is_string() && key.as_string().length != 1)
        fail(FailureKind::kValue, "string keys in translate table must be of length 1");
      out.set(key.is_string() ? code(key.view()) : key, value);
    }
    return Value::dict(std::move(out));
  }
  if (args[0].is_string() && args[1].is_string() && args[0].as_string().length != args[1].as_string().length)
    fail(FailureKind::kValue, "the first two maketrans arguments must have equal length");
  const std::string_view from = args.text(0).view(), to = args.text(1).view();
  for (std::size_t i = 0, j = 0; i < from.size(); i += decode_at(from, i).size, j += decode_at(to, j).size)
    out.set(code(from.substr(i)), code(to.substr(j)));
  if (args.has(2)) {
    const std::string_view gone = args.text(2).view();
    for (std::size_t i = 0; i < gone.size(); i += decode_at(gone, i).size) out.set(code(gone.substr(i)), Value());
  }
  return Value::dict(std::move(out));
}

Value translated(Runtime&, const Value& self, Arguments& arguments) {
  const Binder args("translate", arguments, {"table"}, 1, true);
  if (!args[0].is_dict()) fail_type(fmt::format("'{}' object is no translation table", type_name(args[0])));
  const Text& text = self.text();
  Text out;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode_at(text.view(), at);
    const Value* found = args[0].as_dict().find(Value::integer(static_cast<std::int64_t>(point.value)));
    if (found == nullptr) {
      out.append(text, at, at + point.size);
    } else if (found->is_string()) {
      out.append(found->text());
    } else if (found->is_int() && found->as_int() >= 0 && found->as_int() <= 0x10FFFF) {
      std::string one;
      encode_to(one, static_cast<char32_t>(found->as_int()));
      out.append(one, text.origin_at(at));
    } else if (!found->is_none()) {
      fail_type("character mapping must return integer, None or str");
    }
    at += point.size;
  }
  return like(self, std::move(out));
}

constexpr MethodEntry kMethods[] = {
    {"upper", mapped<to_upper>},
    {"lower", mapped<to_lower>},
    {"title", mapped<to_title>},
    {"capitalize", mapped<to_capitalized>},
    {"swapcase", mapped<to_swapped>},
    {"casefold", mapped<to_casefolded>},
    {"strip", stripped<Side::kBoth>},
    {"lstrip", stripped<Side::kLeft>},
    {"rstrip", stripped<Side::kRight>},
    {"replace", replaced},
    {"split", divided<false>},
    {"rsplit", divided<true>},
    {"splitlines", lines},
    {"partition", partitioned<false>},
    {"rpartition", partitioned<true>},
    {"join", joined},
    {"removeprefix", without_prefix},
    {"removesuffix", without_suffix},
    {"maketrans", make_translation},
    {"translate", translated},
};

}  // namespace

std::span<const MethodEntry> string_methods() { return kMethods; }

}  // namespace hk::tokenizer::jinja
