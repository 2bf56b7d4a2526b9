// Cutting at special tokens, bos and eos, decoding.
#include "tokenizer/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "tokenizer/eog.h"
#include "tokenizer/utf8.h"

namespace hk::tokenizer {
namespace {

/// Phi-3's special tokens swallow the blanks after them. The metadata has no field for it, only the name tells.
bool is_phi3(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

}  // namespace

FamilyTokenizer::FamilyTokenizer(Vocabulary&& vocabulary, FamilyTraits traits)
    : vocabulary_(std::move(vocabulary)),
      traits_(traits),
      eog_ids_(end_of_generation_ids(vocabulary_)),
      add_bos_(vocabulary_.source().add_bos.value_or(traits.add_bos) && vocabulary_.bos.has_value()),
      add_eos_(vocabulary_.source().add_eos.value_or(false) && vocabulary_.eos.has_value()),
      phi3_(vocabulary_.source().model == "llama" && is_phi3(vocabulary_.source().general_name)) {
  for (TokenId id = 0; static_cast<std::size_t>(id) < vocabulary_.size(); ++id) {
    if (!vocabulary_.is_special(id)) continue;
    const bool always = vocabulary_.type(id) == TokenType::kUserDefined;
    matcher_.add(vocabulary_.text(id), id, always);
    if (traits_.fold_blanks && vocabulary_.text(id).find_first_of(" \xE2") != std::string_view::npos) {
      std::string blanks, blocks;
      append_replaced(vocabulary_.text(id), kLowerOneEighthBlock, " ", blanks);
      append_replaced(blanks, " ", kLowerOneEighthBlock, blocks);
      matcher_.add(blanks, id, always);
      matcher_.add(blocks, id, always);
    }
  }
  matcher_.finish();
  if (vocabulary_.source().add_bos.value_or(false) && !vocabulary_.bos)
    add_remark("tokenizer.ggml.add_bos_token is true but there is no tokenizer.ggml.bos_token_id: no bos is added");
  if (vocabulary_.source().add_eos.value_or(false) && !vocabulary_.eos)
    add_remark("tokenizer.ggml.add_eos_token is true but there is no tokenizer.ggml.eos_token_id: no eos is added");
}

bool FamilyTokenizer::swallows_blanks(TokenId id) const {
  if (!phi3_) return false;
  const std::string_view text = vocabulary_.text(id);
  return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

std::vector<TokenId> FamilyTokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() >
      std::numeric_limits<std::uint32_t>::max() / 4)  // symbols count bytes in 32 bits, U+2581 takes three
    throw Error(fmt::format("a text of {} bytes is too long to be tokenized in one piece", text.size()));
  auto lease = pool_.take();
  Scratch& scratch = *lease;
  std::vector<TokenId> out;
  out.reserve(text.size() / 3 + 8);
  if (options.add_special && add_bos_) out.push_back(*vocabulary_.bos);
  if (traits_.fold_blanks && !options.parse_special && text.find(kLowerOneEighthBlock) != std::string_view::npos) {
    scratch.folded.clear();
    append_replaced(text, kLowerOneEighthBlock, " ", scratch.folded);
    text = scratch.folded;
  }
  matcher_.scan(text, options.parse_special, scratch.hits);
  std::size_t at = 0;
  for (std::size_t i = scratch.hits.size(); i-- > 0;) {  // they come last first
    const SpecialMatcher::Hit hit = scratch.hits[i];
    if (hit.position < at) continue;
    if (hit.position > at) encode_segment(text.substr(at, hit.position - at), scratch, out);
    out.push_back(hit.id);
    at = hit.position + hit.length;
    if (swallows_blanks(hit.id)) {
      for (Utf8Char c = decode_char(text.substr(at)); c.length != 0 && is_white_space(c.code);
           c = decode_char(text.substr(at)))
        at += c.length;
    }
  }
  if (at < text.size()) encode_segment(text.substr(at), scratch, out);
  if (options.add_special && add_eos_) out.push_back(*vocabulary_.eos);
  return out;
}

void FamilyTokenizer::append_piece(TokenId id, std::string& out) const {
  if (!vocabulary_.contains(id)) return;
  switch (vocabulary_.type(id)) {
    case TokenType::kNormal:
      append_normal(vocabulary_.text(id), out);
      break;
    case TokenType::kByte:
      out += static_cast<char>(*byte_of(vocabulary_.text(id)));
      break;
    case TokenType::kUnused:
      break;
    default:
      out += vocabulary_.text(id);
  }
}

std::string FamilyTokenizer::piece(TokenId id) const {
  std::string out;
  append_piece(id, out);
  return out;
}

std::string FamilyTokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string out;
  for (const TokenId id : ids)
    if (!(skip_special && is_control(id))) append_piece(id, out);
  if (traits_.space_prefix && !out.empty() && out[0] == ' ') out.erase(0, 1);
  return out;
}

bool FamilyTokenizer::is_control(TokenId id) const {
  return vocabulary_.contains(id) &&
         (vocabulary_.type(id) == TokenType::kControl || vocabulary_.type(id) == TokenType::kUnknown);
}

std::optional<TokenId> FamilyTokenizer::find_special(std::string_view text) const {
  std::vector<SpecialMatcher::Hit> hits;
  matcher_.scan(text, true, hits);
  if (hits.empty() || hits.back().position != 0 || hits.back().length != text.size()) return std::nullopt;
  return hits.back().id;
}

}  // namespace hk::tokenizer
