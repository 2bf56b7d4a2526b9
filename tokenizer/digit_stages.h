// The stages of a pre-tokenizer that are no expression: digit groups counted from the right, and ladders of blanks.
//
// Layer: tokenizer. See StageKind for what each one means; all take time linear in the piece.
#pragma once

#include <string_view>

#include "tokenizer/pretokenizers.h"
#include "tokenizer/text_sink.h"

namespace hk::tokenizer {

/// Cuts `piece` (valid UTF-8) by a stage that is not an expression; the pieces are handed on in order.
void run_hand_written_stage(StageKind kind, std::string_view piece, TextSink sink);

}  // namespace hk::tokenizer
