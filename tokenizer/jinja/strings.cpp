// Stripping, replacing, splitting and padding of Text.
#include "tokenizer/jinja/strings.h"

#include <algorithm>

#include "tokenizer/jinja/meter.h"
#include "tokenizer/jinja/unicode.h"

namespace hk::tokenizer::jinja {
namespace {

bool holds(std::string_view characters, std::string_view one) {
  for (std::size_t at = 0; at < characters.size();) {
    const std::size_t size = decode_at(characters, at).size;
    if (characters.substr(at, size) == one) return true;
    at += size;
  }
  return false;
}

std::size_t as_limit(std::int64_t limit) {
  return limit < 0 ? static_cast<std::size_t>(-1) : static_cast<std::size_t>(limit);
}

}  // namespace

Text strip(const Text& text, Side side, std::optional<std::string_view> characters) {
  const std::string_view bytes = text.view();
  const auto unwanted = [&](std::size_t at, const CodePoint& point) {
    if (!characters) return is_space(point.value);
    charge_steps(characters->size() / 64);
    return holds(*characters, bytes.substr(at, point.size));
  };
  std::size_t begin = 0, end = bytes.size();
  if (side != Side::kRight) {
    while (begin < end) {
      const CodePoint point = decode_at(bytes, begin);
      if (!unwanted(begin, point)) break;
      begin += point.size;
    }
  }
  if (side != Side::kLeft) {
    while (end > begin) {
      const std::size_t start = previous_start(bytes, end);
      if (!unwanted(start, decode_at(bytes, start))) break;
      end = start;
    }
  }
  return text.slice(begin, end);
}

Text replace(const Text& text, const Text& from, const Text& to, std::int64_t count) {
  const std::string_view bytes = text.view();
  std::size_t left = as_limit(count);
  Text out;
  std::size_t kept = 0;
  if (from.empty()) {  // between all code points and at both ends
    for (std::size_t at = 0; left > 0; --left) {
      out.append(to);
      if (at >= bytes.size()) break;
      const std::size_t size = decode_at(bytes, at).size;
      out.append(text, at, at + size);
      at += size;
      kept = at;
    }
    out.append(text, kept, bytes.size());
    return out;
  }
  while (left-- > 0) {
    const std::size_t found = find_text(bytes, from.view(), kept);
    if (found == kNotFound) break;
    out.append(text, kept, found);
    out.append(to);
    kept = found + from.size();
  }
  if (kept == 0 && out.empty()) return text;
  out.append(text, kept, bytes.size());
  return out;
}

std::vector<Text> split(const Text& text, std::string_view separator, std::int64_t limit) {
  std::vector<Text> parts;
  std::size_t begin = 0;
  for (std::size_t left = as_limit(limit); left > 0; --left) {
    const std::size_t found = find_text(text.view(), separator, begin);
    if (found == kNotFound) break;
    charge_steps(1);
    parts.push_back(text.slice(begin, found));
    begin = found + separator.size();
  }
  parts.push_back(text.slice(begin, text.size()));
  return parts;
}

std::vector<Text> split_right(const Text& text, std::string_view separator, std::int64_t limit) {
  std::vector<Text> parts;
  std::size_t end = text.size();
  for (std::size_t left = as_limit(limit); left > 0; --left) {
    const std::size_t found = find_last_text(text.view().substr(0, end), separator);
    if (found == kNotFound) break;
    charge_steps(1);
    parts.push_back(text.slice(found + separator.size(), end));
    end = found;
  }
  parts.push_back(text.slice(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Text> split_blank(const Text& text, std::int64_t limit) {
  const std::string_view bytes = text.view();
  std::vector<Text> parts;
  std::size_t left = as_limit(limit), at = 0;
  const auto skip = [&](bool blank) {
    while (at < bytes.size()) {
      const CodePoint point = decode_at(bytes, at);
      if (is_space(point.value) != blank) break;
      at += point.size;
    }
  };
  for (skip(true); at < bytes.size(); skip(true)) {
    charge_steps(1);
    const std::size_t begin = at;
    if (left == 0) {
      parts.push_back(text.slice(begin, bytes.size()));
      break;
    }
    --left;
    skip(false);
    parts.push_back(text.slice(begin, at));
  }
  return parts;
}

std::vector<Text> split_blank_right(const Text& text, std::int64_t limit) {
  const std::string_view bytes = text.view();
  std::vector<Text> parts;
  std::size_t left = as_limit(limit), at = bytes.size();
  const auto skip = [&](bool blank) {
    while (at > 0) {
      const std::size_t start = previous_start(bytes, at);
      if (is_space(decode_at(bytes, start).value) != blank) break;
      at = start;
    }
  };
  for (skip(true); at > 0; skip(true)) {
    charge_steps(1);
    const std::size_t end = at;
    if (left == 0) {
      parts.push_back(text.slice(0, end));
      break;
    }
    --left;
    skip(false);
    parts.push_back(text.slice(at, end));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<Text> split_lines(const Text& text, bool keep_ends) {
  const std::string_view bytes = text.view();
  std::vector<Text> lines;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint point = decode_at(bytes, at);
    std::size_t next = at + point.size;
    if (is_line_break(point.value)) {
      charge_steps(1);
      if (point.value == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      lines.push_back(text.slice(begin, keep_ends ? next : at));
      begin = next;
    }
    at = next;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

Text pad(const Text& text, std::size_t length, std::int64_t width, std::string_view fill, Side text_side) {
  if (width <= static_cast<std::int64_t>(length)) return text;
  const std::size_t missing = static_cast<std::size_t>(width) - length;
  std::size_t left = 0;
  if (text_side == Side::kRight) left = missing;
  // The odd blank goes left when the width is odd, as Python has it.
  if (text_side == Side::kBoth) left = missing / 2 + (missing & static_cast<std::size_t>(width) & 1);
  Text out;
  out.append_repeated(fill, left, Origin::kTemplate);
  out.append(text);
  out.append_repeated(fill, missing - left, Origin::kTemplate);
  return out;
}

}  // namespace hk::tokenizer::jinja
