// BPE vocabularies with merges ("gpt2"): pre-tokenizer, then merges by rank inside each word.
//
// Layer: tokenizer. TOKENIZERS.md section 5. Words are spelled in the byte alphabet, or in plain characters for the few
// pre-tokenizers that say so.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tokenizer/family.h"
#include "tokenizer/pair_table.h"
#include "tokenizer/pretokenizers.h"
#include "tokenizer/splitter.h"

namespace hk::tokenizer {

class BpeTokenizer final : public FamilyTokenizer {
 public:
  explicit BpeTokenizer(Vocabulary&& vocabulary);

 private:
  struct Choice {
    PreTokenizer pre;  // flags, and the stages unless the model brings its own expressions
    std::vector<Stage> stages;
    bool own_expressions = false;
    std::string remark;
  };
  static Choice choose(const Vocabulary& vocabulary);
  BpeTokenizer(Vocabulary&& given, const Choice& choice);

  void encode_segment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const override;
  void append_normal(std::string_view text, std::string& out) const override;

  void read_merges();
  void encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void merge_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void merge_bytes(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void merge_characters(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void push_leftover(std::string_view character, std::vector<TokenId>& out) const;

  PreTokenizer pre_;  // flags only
  bool ignore_merges_;
  Splitter splitter_;
  PairTable pairs_;
  std::array<TokenId, 256> alphabet_{};  // id of each byte's character, kNoToken where the vocabulary lacks it
};

}  // namespace hk::tokenizer
