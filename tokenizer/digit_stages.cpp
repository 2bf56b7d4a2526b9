// Digit groups counted from the right, and ladders of blanks.
#include "tokenizer/digit_stages.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "tokenizer/utf8.h"

namespace hk::tokenizer {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_digit(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

/// \w as the models' tokenizers mean it: letters, marks, numbers, connectors.
bool is_word(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

/// Hands on [from, to) of a piece when it is not empty.
void emit(std::string_view piece, std::size_t from, std::size_t to, TextSink sink) {
  if (to > from) sink(piece.substr(from, to - from));
}

void run_digits(StageKind kind, std::string_view piece, TextSink sink) {
  std::size_t done = 0;             // everything before is handed on
  std::vector<std::size_t> starts;  // of the characters of the current run
  std::size_t at = 0;
  while (at < piece.size()) {
    starts.clear();
    Utf8Char c{};
    while (at < piece.size()) {
      c = decode_char(piece.substr(at));
      if (!(kind == StageKind::kNumberGroups ? is_number(c.code) : is_digit(c.code))) break;
      starts.push_back(at);
      at += std::max<std::size_t>(c.length, 1);
    }
    const std::size_t count = starts.size();
    const bool at_end = at >= piece.size();
    const bool wanted = count != 0 && (kind != StageKind::kBoundaryDigitGroups || at_end || !is_word(c.code));
    if (wanted && kind == StageKind::kDigitCuts) {
      for (std::size_t k = count % 3; k < count; k += 3) {
        emit(piece, done, starts[k], sink);
        done = starts[k];
      }
    } else if (wanted) {
      emit(piece, done, starts[0], sink);
      std::size_t from = starts[0];
      for (std::size_t k = count % 3 == 0 ? 3 : count % 3; k < count; k += 3) {
        emit(piece, from, starts[k], sink);
        from = starts[k];
      }
      emit(piece, from, at, sink);
      done = at;
    }
    if (!at_end) at += std::max<std::size_t>(c.length, 1);  // the character that ended the run
  }
  emit(piece, done, piece.size(), sink);
}

void run_blank_ladder(std::string_view piece, TextSink sink) {
  std::vector<std::size_t> starts;
  for (std::size_t at = 0; at < piece.size();) {
    const Utf8Char c = decode_char(piece.substr(at));
    if (!is_white_space(c.code) || c.code == '\n' || c.code == '\r') return sink(piece);
    starts.push_back(at);
    at += c.length;
  }
  starts.push_back(piece.size());
  std::size_t k = 0;
  for (std::size_t step = 512; step != 0; step /= 2)
    for (; starts.size() - 1 - k >= step; k += step) emit(piece, starts[k], starts[k + step], sink);
}

}  // namespace

void run_hand_written_stage(StageKind kind, std::string_view piece, TextSink sink) {
  if (kind == StageKind::kBlankLadder) {
    run_blank_ladder(piece, sink);
  } else {
    run_digits(kind, piece, sink);
  }
}

}  // namespace hk::tokenizer
