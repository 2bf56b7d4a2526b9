// A checked vocabulary: token texts read in place, their types, the way from a text to its id.
//
// Layer: tokenizer. Knows nothing of merging or splitting; both families sit on top of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace hk::tokenizer {

/// Values of `tokenizer.ggml.token_type`.
enum class TokenType : std::uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

inline constexpr TokenId kNoToken = -1;

class Vocabulary {
 public:
  /// Throws hk::Error when lists contradict each other or a special id points outside.
  explicit Vocabulary(VocabularySource source);

  const VocabularySource& source() const { return source_; }
  std::size_t size() const { return types_.size(); }
  bool contains(TokenId id) const { return id >= 0 && static_cast<std::size_t>(id) < types_.size(); }
  std::string_view text(TokenId id) const { return source_.token(static_cast<std::size_t>(id)); }
  TokenType type(TokenId id) const { return types_[static_cast<std::size_t>(id)]; }
  /// A text that may be cut out of the input: type 2, 3 or 4, and no `[PAD<own id>]` filler.
  bool is_special(TokenId id) const;

  /// Id of a text, kNoToken when there is none. Of equal texts a normal token is found first, then the lowest id.
  TokenId find(std::string_view text) const;
  TokenId find_normal(std::string_view text) const {
    const TokenId id = find(text);
    return id != kNoToken && type(id) == TokenType::kNormal ? id : kNoToken;
  }
  /// find() for many texts at once: the look-ups wait for memory together instead of one after another.
  void find_all(std::span<const std::string_view> texts, std::span<TokenId> ids) const;
  TokenId byte_token(std::uint8_t byte) const { return bytes_[byte]; }
  std::size_t longest_text() const { return longest_; }

  std::optional<TokenId> bos, eos, unknown;

 private:
  void read_types();
  void fill_table();
  void read_special_ids();

  struct Slot {
    std::uint32_t tag;  // high half of the text's hash
    TokenId id;
  };

  VocabularySource source_;
  std::vector<TokenType> types_;
  std::vector<Slot> table_;  // open addressing, linear probing; texts stay where the source has them
  std::array<TokenId, 256> bytes_;
  std::vector<TokenId> fillers_;  // ascending
  std::size_t longest_ = 0;
};

/// The byte of a text spelled `<0xNN>`.
std::optional<std::uint8_t> byte_of(std::string_view text);

}  // namespace hk::tokenizer
