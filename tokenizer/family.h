// What both vocabulary families share: cutting at special tokens, bos and eos, decoding.
//
// Layer: tokenizer. A family adds how a segment becomes ids and how a normal token becomes bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/scratch.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace hk::tokenizer {

struct FamilyTraits {
  bool add_bos = false;       ///< when the metadata does not say
  bool space_prefix = false;  ///< each segment gets a blank in front, the decoded text loses one
  /// Blanks and U+2581 are the same to plain text, also where user-defined tokens are made of them (SentencePiece
  /// vocabularies without a blank in front).
  bool fold_blanks = false;
};

class FamilyTokenizer : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const override;
  std::string piece(TokenId id) const override;
  std::string decode(std::span<const TokenId> ids, bool skip_special) const override;
  std::size_t size() const override { return vocabulary_.size(); }
  std::string_view token_text(TokenId id) const override {
    return vocabulary_.contains(id) ? vocabulary_.text(id) : std::string_view();
  }
  bool is_control(TokenId id) const override;
  std::optional<TokenId> find_special(std::string_view text) const override;
  std::optional<TokenId> bos() const override { return vocabulary_.bos; }
  std::optional<TokenId> eos() const override { return vocabulary_.eos; }
  bool adds_bos() const override { return add_bos_; }
  bool adds_space_prefix() const override { return traits_.space_prefix; }
  std::span<const TokenId> eog_ids() const override { return eog_ids_; }
  std::span<const std::string> remarks() const override { return remarks_; }

 protected:
  FamilyTokenizer(Vocabulary&& vocabulary, FamilyTraits traits);

  /// Appends the ids of a text without special tokens; `text` may hold any bytes.
  virtual void encode_segment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const = 0;
  /// Appends the bytes of a token of type normal.
  virtual void append_normal(std::string_view text, std::string& out) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  void add_remark(std::string sentence) { remarks_.push_back(std::move(sentence)); }

 private:
  void append_piece(TokenId id, std::string& out) const;
  bool swallows_blanks(TokenId id) const;

  Vocabulary vocabulary_;
  FamilyTraits traits_;
  SpecialMatcher matcher_;
  std::vector<TokenId> eog_ids_;
  std::vector<std::string> remarks_;
  bool add_bos_;
  bool add_eos_;
  bool phi3_;
  mutable ScratchPool pool_;
};

}  // namespace hk::tokenizer
