// Picks the family of a vocabulary.
#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/bpe.h"
#include "tokenizer/spm.h"

namespace hk::tokenizer {

std::unique_ptr<Tokenizer> Tokenizer::create(VocabularySource source) {
  if (source.model == "gpt2") return std::make_unique<BpeTokenizer>(Vocabulary(std::move(source)));
  if (source.model == "llama") return std::make_unique<SpmTokenizer>(Vocabulary(std::move(source)));
  if (source.model.empty())
    throw Error(fmt::format("{}: there is no tokenizer.ggml.model; supported are 'llama' and 'gpt2'", source.file));
  throw Error(
      fmt::format("{}: vocabularies of model '{}' (tokenizer.ggml.model) are not supported; supported are 'llama' and "
                  "'gpt2'",
                  source.file, source.model));
}

bool Tokenizer::is_eog(TokenId id) const {
  const auto ids = eog_ids();
  return std::binary_search(ids.begin(), ids.end(), id);
}

}  // namespace hk::tokenizer
