// Text to token ids and back, for the vocabularies of spec/TOKENIZERS.md.
//
// Layer: tokenizer (text only). Knows no file: a caller hands over a VocabularySource, views into whatever holds the
// data (the mapped model file), which must outlive the tokenizer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hk::tokenizer {

using TokenId = std::int32_t;

/// What a tokenizer is built from; names are those of TOKENIZERS.md section 1 without "tokenizer.ggml.".
struct VocabularySource {
  std::string_view file;   ///< for messages
  std::string_view model;  ///< "llama" (SentencePiece), "gpt2" (byte-level BPE)
  std::optional<std::string_view> pre;
  std::string_view general_name;       ///< `general.name`; decides Phi-3 blank stripping
  std::vector<std::string> pre_regex;  ///< `tokenizer.hk.pre_regex`; wins over `pre` when not empty
  std::size_t token_count = 0;
  std::function<std::string_view(std::size_t)> token;  ///< text of id i, in place
  std::span<const float> scores;                       ///< empty when absent
  std::span<const std::int32_t> token_types;           ///< empty when absent: all normal
  std::size_t merge_count = 0;
  std::function<std::string_view(std::size_t)> merge;
  std::optional<TokenId> bos, eos, unknown, padding, eot, eom;
  std::optional<TokenId> fim_pad;
  std::vector<TokenId> eog_ids;  ///< `tokenizer.hk.eog_ids` and generation config ids; may be empty
  std::optional<bool> add_bos, add_eos, add_space_prefix, ignore_merges;
};

struct EncodeOptions {
  bool add_special = true;     ///< add bos/eos where the vocabulary says so
  bool parse_special = false;  ///< texts of control tokens become those tokens
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Throws hk::Error for an unknown `model` or `pre` (named), or a vocabulary that contradicts itself.
  static std::unique_ptr<Tokenizer> create(VocabularySource source);

  virtual std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const = 0;

  /// Bytes of one token (TOKENIZERS.md section 10): special texts shown, no blank removed. Empty for ids out of range.
  virtual std::string piece(TokenId id) const = 0;
  /// Whole-sequence text: pieces concatenated, specials left out when `skip_special`, one leading blank removed where
  /// the vocabulary has a prefix blank. May hold invalid UTF-8 when a character is cut.
  virtual std::string decode(std::span<const TokenId> ids, bool skip_special) const = 0;

  virtual std::size_t size() const = 0;
  virtual std::string_view token_text(TokenId id) const = 0;  ///< as stored
  virtual bool is_control(TokenId id) const = 0;              ///< control or unknown
  virtual std::optional<TokenId> find_special(std::string_view text) const = 0;
  virtual std::optional<TokenId> bos() const = 0;
  virtual std::optional<TokenId> eos() const = 0;
  virtual bool adds_bos() const = 0;
  virtual bool adds_space_prefix() const = 0;
  /// Sorted ids that end generation (TOKENIZERS.md section 9).
  virtual std::span<const TokenId> eog_ids() const = 0;
  /// What a user should know about the vocabulary though it is no error (no `pre` named, ...), one sentence each.
  virtual std::span<const std::string> remarks() const { return {}; }
  bool is_eog(TokenId id) const;
};

/// Turns a stream of tokens into text that never ends inside a UTF-8 character. The text is always valid UTF-8: bytes
/// that can no longer become a character are shown as U+FFFD.
class TextStream {
 public:
  /// `strip_leading_blank`: the first text of the stream loses the prefix blank (a fresh text, not a continuation).
  /// `shown`: special tokens that are not skipped.
  TextStream(const Tokenizer& tokenizer, bool skip_special, bool strip_leading_blank, std::vector<TokenId> shown = {});

  /// Text that became complete with this token; may be empty.
  std::string push(TokenId id);
  /// What is left at the end, an incomplete character as U+FFFD.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  bool strip_;
  std::vector<TokenId> shown_;
  std::string pending_;
};

}  // namespace hk::tokenizer
