// NFC stretch by stretch: only what may change is decomposed, ordered and composed.
#include "tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tokenizer/utf8.h"

namespace hk::tokenizer {
namespace {

/// Characters that are in NFC and stay so whatever characters of this set or below U+0300 stand beside them.
bool is_inert(char32_t c) {
  return c < 0x300 || (c >= 0x400 && c <= 0x482) || (c >= 0x2010 && c <= 0x2027) || (c >= 0x3001 && c <= 0x3029) ||
         (c >= 0x3041 && c <= 0x3096) || (c >= 0x30A1 && c <= 0x30FA) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xAC00 && c <= 0xD7A3);
}

/// Appends the canonical decomposition of one character.
void decompose(char32_t c, std::vector<utf8proc_int32_t>& out) {
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
  utf8proc_int32_t buffer[32];  // no canonical decomposition has more than four characters
  int boundary = 0;
  const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), buffer, 32, kOptions, &boundary);
  if (n < 0 || n > 32) {
    out.push_back(static_cast<utf8proc_int32_t>(c));
  } else {
    out.insert(out.end(), buffer, buffer + n);
  }
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

/// Canonical order: marks by combining class, equal classes as they stood.
void order_marks(std::span<utf8proc_int32_t> marks) {
  const auto by_class = [](utf8proc_int32_t a, utf8proc_int32_t b) { return combining_class(a) < combining_class(b); };
  if (std::is_sorted(marks.begin(), marks.end(), by_class)) return;
  std::vector<std::vector<utf8proc_int32_t>> buckets(256);
  for (const utf8proc_int32_t mark : marks) buckets[static_cast<std::size_t>(combining_class(mark))].push_back(mark);
  auto out = marks.begin();
  for (const auto& bucket : buckets) out = std::copy(bucket.begin(), bucket.end(), out);
}

/// Appends `text` in NFC.
void normalize(std::string_view text, std::vector<utf8proc_int32_t>& codes, std::string& out) {
  codes.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_char(text.substr(at));
    decompose(c.code, codes);
    at += std::max<std::size_t>(c.length, 1);
  }
  for (std::size_t from = 0; from < codes.size();) {
    std::size_t to = from;
    while (to < codes.size() && combining_class(codes[to]) != 0) ++to;
    order_marks({codes.data() + from, to - from});
    from = to + 1;
  }
  constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  const auto n = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kOptions);
  for (utf8proc_ssize_t i = 0; i < n; ++i) {
    utf8proc_uint8_t bytes[4];
    const auto length = utf8proc_encode_char(codes[static_cast<std::size_t>(i)], bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
  }
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  const auto below_300 = [](char byte) { return static_cast<unsigned char>(byte) < 0xCC; };  // U+0300 is CC 80
  if (std::all_of(text.begin(), text.end(), below_300)) return text;
  storage.clear();
  std::vector<utf8proc_int32_t> codes;
  // A stretch is one inert character and what follows it up to the next one: nothing composes across its start.
  std::size_t done = 0;   // everything before is in storage
  std::size_t start = 0;  // of the current stretch
  bool active = false;    // the stretch has characters that are not inert
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char c = decode_char(text.substr(at));
    if (is_inert(c.code)) {
      if (active) {
        storage.append(text, done, start - done);
        normalize(text.substr(start, at - start), codes, storage);
        done = at;
      }
      start = at;
      active = false;
    } else {
      active = true;
    }
    at += std::max<std::size_t>(c.length, 1);
  }
  if (done == 0 && !active) return text;
  if (active) {
    storage.append(text, done, start - done);
    normalize(text.substr(start), codes, storage);
    done = text.size();
  }
  storage.append(text, done, std::string_view::npos);
  return storage;
}

}  // namespace hk::tokenizer
