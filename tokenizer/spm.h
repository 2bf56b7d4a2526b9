// SentencePiece vocabularies with BPE scores ("llama"): characters merge by the score of the product, the rest are
// bytes.
//
// Layer: tokenizer. TOKENIZERS.md section 4.
//
// Why not libsentencepiece, which the tests use as the oracle: it takes two seconds a megabyte, replaces invalid UTF-8
// so that decode(encode(x)) != x, needs the vocabulary copied into a protocol buffer with types bent until it loads,
// and cannot put the prefix blank after a special token. The algorithm itself is one merge loop, shared with byte-level
// BPE.
//
// Fast path: a segment is first cut wherever no token of the vocabulary has the two neighbouring characters side by
// side (for most vocabularies: before each blank). No merge can cross such a place, so the parts merge alone, and short
// parts are cached.
#pragma once

#include <bitset>
#include <string>
#include <vector>

#include "tokenizer/family.h"

namespace hk::tokenizer {

class SpmTokenizer final : public FamilyTokenizer {
 public:
  explicit SpmTokenizer(Vocabulary&& given);

 private:
  void encode_segment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const override;
  void append_normal(std::string_view text, std::string& out) const override;

  void note_neighbours(std::string_view text);
  bool may_join(std::string_view left, std::string_view right) const;
  void encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  void merge_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const;
  std::uint32_t priority(TokenId id) const;

  std::size_t longest_normal_ = 0;
  std::bitset<std::size_t{256} * 256> neighbours_;  // [last byte of left][first byte of right] occurs inside a token
};

}  // namespace hk::tokenizer
