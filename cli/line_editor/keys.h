// What a terminal sends, as keys: characters, editing keys, and pasted text as one piece.
//
// Layer: cli/line_editor. Knows no descriptor: bytes go in as they arrive, also in the middle of a sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hk::cli {

enum class KeyKind : std::uint8_t {
  kText,     ///< one character, in `text`
  kPaste,    ///< pasted text, lines ended by \n
  kEnter,    ///< Enter
  kNewLine,  ///< Alt-Enter
  kBackspace,
  kDelete,
  kLeft,
  kRight,
  kUp,
  kDown,
  kHome,
  kEnd,
  kWordLeft,
  kWordRight,
  kDeleteWordLeft,
  kDeleteWordRight,
  kCutToEnd,
  kCutToStart,
  kInsertCut,
  kClearScreen,
  kSearch,
  kTab,
  kInterrupt,   ///< Ctrl-C
  kEndOfInput,  ///< Ctrl-D
  kSuspend,     ///< Ctrl-Z
  kAbort,       ///< Escape or Ctrl-G
  kOther,       ///< a sequence that means nothing here
};

struct Key {
  KeyKind kind;
  std::string text;  ///< of kText and kPaste: valid UTF-8 without control characters other than \n and \t
};

class KeyDecoder {
 public:
  void feed(std::string_view bytes) { bytes_ += bytes; }
  /// The next whole key; nullopt when more bytes are needed.
  std::optional<Key> next();
  /// Bytes that are not taken yet.
  std::size_t size() const { return bytes_.size(); }
  bool waiting() const { return !bytes_.empty(); }
  /// The next key when nothing more is on its way: what has begun is whole, Escape for one.
  std::optional<Key> flush();

 private:
  std::optional<Key> escape_sequence();
  std::optional<Key> paste();
  std::optional<Key> character();
  Key take(std::size_t bytes, KeyKind kind);

  std::string bytes_;
  std::size_t paste_searched_ = 0;  // bytes of an unfinished paste that hold no end mark
};

}  // namespace hk::cli
