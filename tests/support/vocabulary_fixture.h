// Opens the packed vocabulary fixtures: one unpacked file, its reader and its tokenizer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/container/vocabulary.h"
#include "tests/support/fixtures.h"
#include "tokenizer/tokenizer.h"

namespace hk::test {

inline const std::vector<std::string>& vocabulary_names() {
  static const std::vector<std::string> names = {
      "llama-spm",   "mistral-spm",    "phi-3",        "gemma3", "gpt-2",     "llama-bpe", "qwen3", "gpt-oss",
      "deepseek-v3", "deepseek-coder", "deepseek-llm", "falcon", "starcoder", "refact",    "mpt"};
  return names;
}

struct LoadedVocabulary {
  explicit LoadedVocabulary(const std::filesystem::path& packed) {
    reader = engine::open_model(folder.write("vocab.gguf", read_zst(packed)).string());
    tokenizer = engine::make_tokenizer(*reader);
  }

  TemporaryFolder folder;
  std::unique_ptr<engine::ModelReader> reader;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
};

/// A vocabulary small enough to write down, for what the big ones never do. Views point into this object.
struct SmallVocabulary {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  tokenizer::VocabularySource source;

  /// Call after the lists are filled.
  tokenizer::VocabularySource& finish(std::string_view model) {
    source.file = "small.gguf";
    source.model = model;
    source.token_count = tokens.size();
    source.token = [this](std::size_t i) -> std::string_view { return tokens[i]; };
    source.merge_count = merges.size();
    source.merge = [this](std::size_t i) -> std::string_view { return merges[i]; };
    source.scores = scores;
    source.token_types = types;
    return source;
  }
};

}  // namespace hk::test
