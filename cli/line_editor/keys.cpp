// Decoding of terminal input (see keys.h). Sequences as xterm, tmux, the Linux console and the VT220 family send them.
#include "cli/line_editor/keys.h"

#include <algorithm>

#include "base/utf8.h"

namespace hk::cli {
namespace {

constexpr char kEscape = '\x1b';
constexpr std::string_view kPasteBegin = "\x1b[200~";
constexpr std::string_view kPasteEnd = "\x1b[201~";
/// No sequence that means something is longer; what is longer is dropped bit by bit.
constexpr std::size_t kLongestSequence = 32;

KeyKind control_key(char byte) {
  switch (byte) {
    case '\x01':
      return KeyKind::kHome;
    case '\x02':
      return KeyKind::kLeft;
    case '\x03':
      return KeyKind::kInterrupt;
    case '\x04':
      return KeyKind::kEndOfInput;
    case '\x05':
      return KeyKind::kEnd;
    case '\x06':
      return KeyKind::kRight;
    case '\x07':
      return KeyKind::kAbort;
    case '\x08':
    case '\x7f':
      return KeyKind::kBackspace;
    case '\t':
      return KeyKind::kTab;
    case '\n':
    case '\r':
      return KeyKind::kEnter;
    case '\x0b':
      return KeyKind::kCutToEnd;
    case '\x0c':
      return KeyKind::kClearScreen;
    case '\x0e':
      return KeyKind::kDown;
    case '\x10':
      return KeyKind::kUp;
    case '\x12':
      return KeyKind::kSearch;
    case '\x15':
      return KeyKind::kCutToStart;
    case '\x17':
      return KeyKind::kDeleteWordLeft;
    case '\x19':
      return KeyKind::kInsertCut;
    case '\x1a':
      return KeyKind::kSuspend;
    default:
      return KeyKind::kOther;
  }
}

/// Escape and one more byte: what Alt sends.
KeyKind alt_key(char byte) {
  switch (byte) {
    case '\r':
    case '\n':
      return KeyKind::kNewLine;
    case 'b':
    case 'B':
      return KeyKind::kWordLeft;
    case 'f':
    case 'F':
      return KeyKind::kWordRight;
    case 'd':
    case 'D':
      return KeyKind::kDeleteWordRight;
    case '\x08':
    case '\x7f':
      return KeyKind::kDeleteWordLeft;
    default:
      return KeyKind::kOther;
  }
}

/// ESC [ parameters final, ESC O final. `modified`: with Ctrl or Alt, where arrows go by words.
KeyKind cursor_key(char final, bool modified) {
  switch (final) {
    case 'A':
      return KeyKind::kUp;
    case 'B':
      return KeyKind::kDown;
    case 'C':
      return modified ? KeyKind::kWordRight : KeyKind::kRight;
    case 'D':
      return modified ? KeyKind::kWordLeft : KeyKind::kLeft;
    case 'F':
      return KeyKind::kEnd;
    case 'H':
      return KeyKind::kHome;
    default:
      return KeyKind::kOther;
  }
}

KeyKind numbered_key(std::string_view parameters) {
  const std::string_view number = parameters.substr(0, parameters.find(';'));
  if (number == "1" || number == "7") return KeyKind::kHome;
  if (number == "4" || number == "8") return KeyKind::kEnd;
  if (number == "3") return KeyKind::kDelete;
  // Modified Enter, as terminals that tell it apart write it.
  if (number == "27" && parameters.ends_with(";13")) return KeyKind::kNewLine;
  return KeyKind::kOther;
}

bool modified(std::string_view parameters) {
  const auto semicolon = parameters.find(';');
  if (semicolon == std::string_view::npos) return false;
  const std::string_view modifier = parameters.substr(semicolon + 1);
  return !modifier.empty() && modifier != "1" && modifier != "2";  // 2: Shift
}

/// Pasted text made fit for a line: \r\n and \r are \n, other control characters and broken UTF-8 are left out.
std::string clean_paste(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t valid_end = find_invalid_utf8(text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == valid_end) {
      valid_end = i + 1 + find_invalid_utf8(text.substr(i + 1));
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == '\r') {
      out += '\n';
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
    } else if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7f)) {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Key KeyDecoder::take(std::size_t bytes, KeyKind kind) {
  bytes_.erase(0, bytes);
  return {kind, {}};
}

std::optional<Key> KeyDecoder::next() {
  if (bytes_.empty()) return std::nullopt;
  const auto first = static_cast<unsigned char>(bytes_[0]);
  if (bytes_[0] == kEscape) return escape_sequence();
  if (first < 0x20 || first == 0x7f) return take(1, control_key(bytes_[0]));
  return character();
}

std::optional<Key> KeyDecoder::flush() {
  if (auto key = next()) return key;
  if (bytes_.empty()) return std::nullopt;
  if (bytes_[0] == kEscape && bytes_.starts_with(kPasteBegin)) return std::nullopt;  // the end of a paste does come
  const KeyKind kind = bytes_.size() == 1 && bytes_[0] == kEscape ? KeyKind::kAbort : KeyKind::kOther;
  return take(bytes_.size(), kind);
}

std::optional<Key> KeyDecoder::character() {
  const auto first = static_cast<unsigned char>(bytes_[0]);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (bytes_.size() < length) return std::nullopt;
  const std::string text = bytes_.substr(0, length);
  if (!is_valid_utf8(text)) return take(1, KeyKind::kOther);
  // U+0080 to U+009F are control characters too.
  if (first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0) return take(length, KeyKind::kOther);
  Key key = take(length, KeyKind::kText);
  key.text = text;
  return key;
}

std::optional<Key> KeyDecoder::escape_sequence() {
  if (bytes_.size() < 2) return std::nullopt;
  if (bytes_.starts_with(kPasteBegin)) return paste();
  if (bytes_[1] == 'O') {
    if (bytes_.size() < 3) return std::nullopt;
    return take(3, cursor_key(bytes_[2], false));
  }
  if (bytes_[1] == kEscape) return take(1, KeyKind::kAbort);
  if (bytes_[1] != '[') return take(2, alt_key(bytes_[1]));
  std::size_t end = 2;
  while (end < bytes_.size() && (bytes_[end] < 0x40 || bytes_[end] > 0x7e)) {
    const auto byte = static_cast<unsigned char>(bytes_[end]);
    if (byte < 0x20 || byte > 0x7e) return take(end, KeyKind::kOther);  // not part of any sequence
    ++end;
  }
  if (end == bytes_.size()) {
    if (end > kLongestSequence) return take(end, KeyKind::kOther);
    return std::nullopt;
  }
  const std::string parameters = bytes_.substr(2, end - 2);
  const char final = bytes_[end];
  if (final == '~') return take(end + 1, numbered_key(parameters));
  if (final == 'u' && parameters.starts_with("13;")) return take(end + 1, KeyKind::kNewLine);
  return take(end + 1, cursor_key(final, modified(parameters)));
}

std::optional<Key> KeyDecoder::paste() {
  const std::size_t begin = kPasteBegin.size();
  const std::size_t end = bytes_.find(kPasteEnd, std::max(begin, paste_searched_));
  if (end == std::string::npos) {
    // The end mark may be cut: its first bytes are looked at again.
    paste_searched_ = std::max(begin, bytes_.size() - std::min(bytes_.size(), kPasteEnd.size() - 1));
    return std::nullopt;
  }
  paste_searched_ = 0;
  std::string text = clean_paste(std::string_view(bytes_).substr(begin, end - begin));
  Key key = take(end + kPasteEnd.size(), KeyKind::kPaste);
  key.text = std::move(text);
  return key;
}

}  // namespace hk::cli
