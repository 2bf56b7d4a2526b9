// UTF-8 bytes with the origin of each.
#include "tokenizer/jinja/text.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>

#include "tokenizer/jinja/failure.h"
#include "tokenizer/jinja/meter.h"

namespace hk::tokenizer::jinja {
namespace {

constexpr std::size_t kShortNeedle = 16;  // the plain search is quick and its worst case harmless

Origin other_than(Origin origin) { return origin == Origin::kData ? Origin::kTemplate : Origin::kData; }

}  // namespace

Origin Text::origin_at(std::size_t byte) const {
  const auto passed = std::upper_bound(flips_.begin(), flips_.end(), byte) - flips_.begin();
  return passed % 2 == 0 ? first_ : other_than(first_);
}

std::vector<TextRun> Text::runs() const {
  std::vector<TextRun> out;
  std::size_t begin = 0;
  Origin origin = first_;
  for (const std::size_t flip : flips_) {
    out.push_back({begin, flip, origin});
    begin = flip;
    origin = other_than(origin);
  }
  if (begin < bytes_.size()) out.push_back({begin, bytes_.size(), origin});
  return out;
}

void Text::reserve_more(std::size_t count) {
  if (count > kMaxTextBytes - bytes_.size())
    fail(FailureKind::kLimit, fmt::format("a string would be longer than {} bytes", kMaxTextBytes));
}

void Text::append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  reserve_more(bytes.size());
  if (bytes_.empty()) {
    first_ = origin;
  } else if (last() != origin) {
    flips_.push_back(bytes_.size());
  }
  bytes_.append(bytes);
}

void Text::append(const Text& other, std::size_t begin, std::size_t end) {
  if (begin >= end) return;
  if (other.flips_.empty()) {
    append(other.view().substr(begin, end - begin), other.first_);
    return;
  }
  auto flip = std::upper_bound(other.flips_.begin(), other.flips_.end(), begin);
  Origin origin = (flip - other.flips_.begin()) % 2 == 0 ? other.first_ : other_than(other.first_);
  while (begin < end) {
    const std::size_t stop = flip == other.flips_.end() ? end : std::min(end, *flip++);
    append(other.view().substr(begin, stop - begin), origin);
    origin = other_than(origin);
    begin = stop;
  }
}

void Text::append_repeated(std::string_view bytes, std::size_t count, Origin origin) {
  if (bytes.empty() || count == 0) return;
  if (count > kMaxTextBytes / bytes.size()) reserve_more(kMaxTextBytes + 1 - bytes_.size());
  reserve_more(bytes.size() * count);
  append(bytes, origin);
  bytes_.reserve(bytes_.size() + bytes.size() * (count - 1));
  for (std::size_t i = 1; i < count; ++i) bytes_.append(bytes);
}

Text Text::slice(std::size_t begin, std::size_t end) const {
  Text out;
  out.append(*this, begin, end);
  return out;
}

CodePoint decode_at(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[at + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const CodePoint invalid{0xDC00U + lead, 1};
  const std::size_t left = bytes.size() - at;
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  if (lead >= 0xC2 && lead <= 0xDF) {
    if (left < 2 || !continues(1)) return invalid;
    return {static_cast<char32_t>((lead & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (left < 3 || !continues(1) || !continues(2)) return invalid;
    const auto value = static_cast<char32_t>((lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F));
    return value < 0x800 ? invalid : CodePoint{value, 3};
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (left < 4 || !continues(1) || !continues(2) || !continues(3)) return invalid;
    const auto value =
        static_cast<char32_t>((lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F));
    return value < 0x10000 || value > 0x10FFFF ? invalid : CodePoint{value, 4};
  }
  return invalid;
}

std::size_t previous_start(std::string_view bytes, std::size_t end) {
  for (std::size_t back = std::min<std::size_t>(4, end); back > 1; --back)
    if (decode_at(bytes.substr(0, end), end - back).size == back) return end - back;
  return end - 1;
}

void encode_to(std::string& out, char32_t value) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

std::size_t count_code_points(std::string_view bytes) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); ++count) {
    at += static_cast<unsigned char>(bytes[at]) < 0x80 ? 1 : decode_at(bytes, at).size;
  }
  return count;
}

std::size_t offset_of(std::string_view bytes, std::size_t index, std::size_t from) {
  std::size_t at = from;
  while (index > 0 && at < bytes.size()) {
    at += decode_at(bytes, at).size;
    --index;
  }
  return at;
}

std::size_t find_text(std::string_view haystack, std::string_view needle, std::size_t from) {
  if (from > haystack.size()) return kNotFound;
  if (needle.empty()) return from;
  std::size_t place = kNotFound;
  if (needle.size() < kShortNeedle) {
    place = haystack.find(needle, from);
  } else if (const void* hit = memmem(haystack.data() + from, haystack.size() - from, needle.data(), needle.size())) {
    place = static_cast<std::size_t>(static_cast<const char*>(hit) - haystack.data());
  }
  charge_steps(1 + ((place == kNotFound ? haystack.size() : place) - from) / 256);
  return place;
}

std::size_t find_last_text(std::string_view haystack, std::string_view needle) {
  if (needle.size() > haystack.size()) return kNotFound;
  if (needle.size() < kShortNeedle) return haystack.rfind(needle);
  // Knuth-Morris-Pratt from the right: a long needle must not cost its length at every place.
  charge_steps(haystack.size() / 64);
  const std::size_t m = needle.size();
  const auto wanted = [&](std::size_t i) { return needle[m - 1 - i]; };
  std::vector<std::uint32_t> border(m, 0);
  for (std::size_t i = 1, k = 0; i < m; ++i) {
    while (k > 0 && wanted(i) != wanted(k)) k = border[k - 1];
    if (wanted(i) == wanted(k)) ++k;
    border[i] = static_cast<std::uint32_t>(k);
  }
  for (std::size_t i = haystack.size(), k = 0; i-- > 0;) {
    while (k > 0 && haystack[i] != wanted(k)) k = border[k - 1];
    if (haystack[i] == wanted(k)) ++k;
    if (k == m) return i;
  }
  return kNotFound;
}

}  // namespace hk::tokenizer::jinja
