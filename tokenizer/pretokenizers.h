// Which pre-tokenizer a `tokenizer.ggml.pre` name means: data only.
//
// Layer: tokenizer. The table is pretokenizers.cpp; splitter.h runs it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hk::tokenizer {

/// What one stage does with a piece. Most are expressions; the rest are written by hand because their expression takes
/// quadratic time on long runs in any backtracking engine.
enum class StageKind : std::uint8_t {
  kExpression,           ///< matches and the gaps between them become pieces
  kNumberGroups,         ///< each run of \p{N} becomes pieces of three, counted from the right
  kBoundaryDigitGroups,  ///< \d{1,3}(?=(?:\d{3})*\b): runs of digits that end at a word boundary, in threes from the
                         ///< right
  kDigitCuts,    ///< (?=(\d{3})+(?!\d)): cuts before each group of three counted from the right end of a digit run
  kBlankLadder,  ///< a piece of white space without line ends falls into 512, 256, ... 2, 1 characters
};

struct Stage {
  StageKind kind = StageKind::kExpression;
  std::string_view expression = {};
};

struct PreTokenizer {
  std::span<const Stage> stages;
  bool ignore_merges = false;
  bool add_bos = false;  ///< when the metadata does not say
  bool nfc = false;
  bool byte_alphabet = true;   ///< words are spelled in the byte alphabet; else merges run on characters
  bool escape_blanks = false;  ///< U+0020 is written U+2581
};

/// Null for an unknown name.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
/// All known names, for messages.
std::vector<std::string_view> pre_tokenizer_names();

/// Appends the stages of an expression that came with a model: a hand-written or faster equivalent where the table has
/// one, else the expression itself (the view must stay alive).
void append_stages(std::string_view expression, std::vector<Stage>& stages);

}  // namespace hk::tokenizer
