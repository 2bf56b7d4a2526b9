// Checking a vocabulary and indexing its texts.
#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/error.h"
#include "tokenizer/hash.h"

namespace hk::tokenizer {
namespace {

/// "[PAD<id>]" with the token's own id.
bool is_filler(std::string_view text, std::size_t id) {
  if (text.size() < 6 || text.substr(0, 4) != "[PAD" || text.back() != ']') return false;
  const char* const end = text.data() + text.size() - 1;
  std::size_t number = 0;
  const auto [stop, error] = std::from_chars(text.data() + 4, end, number);
  return error == std::errc() && stop == end && number == id;
}

}  // namespace

std::optional<std::uint8_t> byte_of(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    value *= 16;
    if (c >= '0' && c <= '9') {
      value += static_cast<unsigned>(c - '0');
    } else if (c >= 'A' && c <= 'F') {
      value += static_cast<unsigned>(c - 'A') + 10;
    } else if (c >= 'a' && c <= 'f') {
      value += static_cast<unsigned>(c - 'a') + 10;
    } else {
      return std::nullopt;
    }
  }
  return static_cast<std::uint8_t>(value);
}

Vocabulary::Vocabulary(VocabularySource source) : source_(std::move(source)) {
  bytes_.fill(kNoToken);
  if (source_.token_count == 0 || !source_.token)
    throw Error(
        fmt::format("{}: the vocabulary has no tokens (tokenizer.ggml.tokens is absent or empty)", source_.file));
  if (source_.token_count > static_cast<std::size_t>(std::numeric_limits<TokenId>::max()))
    throw Error(fmt::format("{}: tokenizer.ggml.tokens has {} entries, more than token ids can number", source_.file,
                            source_.token_count));
  read_types();
  fill_table();
  read_special_ids();
}

void Vocabulary::read_types() {
  const auto& given = source_.token_types;
  if (!given.empty() && given.size() != source_.token_count)
    throw Error(
        fmt::format("{}: tokenizer.ggml.token_type has {} entries, tokenizer.ggml.tokens has {}; they must agree",
                    source_.file, given.size(), source_.token_count));
  types_.assign(source_.token_count, TokenType::kNormal);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] < 1 || given[i] > 6)
      throw Error(
          fmt::format("{}: tokenizer.ggml.token_type of token {} is {}; known are 1 to 6", source_.file, i, given[i]));
    types_[i] = static_cast<TokenType>(given[i]);
  }
}

void Vocabulary::fill_table() {
  // 1.6 slots a token keeps probe chains short at 8 bytes a slot (a 150k vocabulary: under 2 MB).
  table_.assign(source_.token_count * 8 / 5 + 8, Slot{0, kNoToken});
  for (std::size_t i = 0; i < source_.token_count; ++i) {
    const std::string_view text = source_.token(i);
    longest_ = std::max(longest_, text.size());
    if (is_filler(text, i)) {  // converters fill gaps so, under several types; no text means such a token
      if (types_[i] == TokenType::kNormal) types_[i] = TokenType::kUnused;
      fillers_.push_back(static_cast<TokenId>(i));
    }
    if (types_[i] == TokenType::kByte) {
      const auto byte = byte_of(text);
      if (!byte)
        throw Error(fmt::format("{}: token {} is typed as a byte but its text is '{}' instead of <0x00> to <0xFF>",
                                source_.file, i, text));
      if (bytes_[*byte] == kNoToken) bytes_[*byte] = static_cast<TokenId>(i);
    }
    const std::uint64_t hash = hash_text(text);
    const auto tag = static_cast<std::uint32_t>(hash);
    std::size_t at = slot_of(hash, table_.size());
    while (table_[at].id != kNoToken) {
      if (table_[at].tag == tag && source_.token(static_cast<std::size_t>(table_[at].id)) == text) break;
      at = at + 1 == table_.size() ? 0 : at + 1;
    }
    Slot& slot = table_[at];
    if (slot.id == kNoToken || (type(slot.id) != TokenType::kNormal && types_[i] == TokenType::kNormal))
      slot = {tag, static_cast<TokenId>(i)};
  }
}

void Vocabulary::read_special_ids() {
  const auto check = [this](const std::optional<TokenId>& id, const char* key) {
    if (id && !contains(*id))
      throw Error(fmt::format("{}: tokenizer.ggml.{} is {}, but the vocabulary has only {} tokens", source_.file, key,
                              *id, size()));
  };
  check(source_.bos, "bos_token_id");
  check(source_.eos, "eos_token_id");
  check(source_.unknown, "unknown_token_id");
  check(source_.padding, "padding_token_id");
  check(source_.eot, "eot_token_id");
  check(source_.eom, "eom_token_id");
  check(source_.fim_pad, "fim_pad_token_id");
  bos = source_.bos;
  eos = source_.eos;
  unknown = source_.unknown;
  if (source_.model == "llama") {  // the numbering every SentencePiece trainer starts with
    if (!bos && contains(1)) bos = 1;
    if (!eos && contains(2)) eos = 2;
    if (!unknown) unknown = 0;
  }
}

bool Vocabulary::is_special(TokenId id) const {
  const TokenType kind = type(id);
  return (kind == TokenType::kUnknown || kind == TokenType::kControl || kind == TokenType::kUserDefined) &&
         !std::binary_search(fillers_.begin(), fillers_.end(), id);
}

TokenId Vocabulary::find(std::string_view text) const {
  const std::uint64_t hash = hash_text(text);
  const auto tag = static_cast<std::uint32_t>(hash);
  for (std::size_t at = slot_of(hash, table_.size());; at = at + 1 == table_.size() ? 0 : at + 1) {
    const Slot& slot = table_[at];
    if (slot.id == kNoToken) return kNoToken;
    if (slot.tag == tag && source_.token(static_cast<std::size_t>(slot.id)) == text) return slot.id;
  }
}

void Vocabulary::find_all(std::span<const std::string_view> texts, std::span<TokenId> ids) const {
  constexpr std::size_t kBatch = 64;  // more than the loads a core has in flight, small enough for L1
  std::uint32_t tags[kBatch];
  std::size_t slots[kBatch];
  std::string_view found[kBatch];
  for (std::size_t from = 0; from < texts.size(); from += kBatch) {
    const std::size_t count = std::min(kBatch, texts.size() - from);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t hash = hash_text(texts[from + i]);
      tags[i] = static_cast<std::uint32_t>(hash);
      slots[i] = slot_of(hash, table_.size());
      __builtin_prefetch(&table_[slots[i]]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t at = slots[i];
      while (table_[at].id != kNoToken && table_[at].tag != tags[i]) at = at + 1 == table_.size() ? 0 : at + 1;
      ids[from + i] = table_[at].id;
    }
    for (std::size_t i = 0; i < count; ++i) {
      found[i] = ids[from + i] == kNoToken ? std::string_view() : text(ids[from + i]);
      __builtin_prefetch(found[i].data());
    }
    for (std::size_t i = 0; i < count;
         ++i)  // another text with the same tag is rare; then the search goes on behind it
      if (ids[from + i] != kNoToken && found[i] != texts[from + i]) ids[from + i] = find(texts[from + i]);
  }
}

}  // namespace hk::tokenizer
