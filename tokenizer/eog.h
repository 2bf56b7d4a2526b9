// Which tokens end generation: the model's own ids, and tokens known by their text.
//
// Layer: tokenizer. TOKENIZERS.md section 9.
#pragma once

#include <vector>

#include "tokenizer/vocabulary.h"

namespace hk::tokenizer {

/// Sorted, without repeats.
std::vector<TokenId> end_of_generation_ids(const Vocabulary& vocabulary);

}  // namespace hk::tokenizer
