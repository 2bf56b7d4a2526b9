// Loading and encoding of BPE vocabularies.
#include "tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/nfc.h"
#include "tokenizer/utf8.h"

namespace hk::tokenizer {

BpeTokenizer::Choice BpeTokenizer::choose(const Vocabulary& vocabulary) {
  const VocabularySource& source = vocabulary.source();
  Choice choice;
  const PreTokenizer* named = source.pre ? find_pre_tokenizer(*source.pre) : nullptr;
  if (!source.pre_regex.empty()) {
    if (named != nullptr) choice.pre = *named;
    choice.own_expressions = true;
    for (const std::string& expression : source.pre_regex) append_stages(expression, choice.stages);
    return choice;
  }
  if (source.pre && named == nullptr) {
    std::string known;
    for (const std::string_view name : pre_tokenizer_names()) known.append(known.empty() ? "" : ", ").append(name);
    throw Error(fmt::format("{}: the pre-tokenizer '{}' (tokenizer.ggml.pre) is not known; known are {}", source.file,
                            *source.pre, known));
  }
  if (!source.pre) {
    named = find_pre_tokenizer("default");
    choice.remark =
        "the vocabulary does not say which pre-tokenizer it was made with (no tokenizer.ggml.pre): the default split "
        "is "
        "used, and token ids may differ from those the model was trained on";
  }
  choice.pre = *named;
  choice.stages.assign(named->stages.begin(), named->stages.end());
  return choice;
}

BpeTokenizer::BpeTokenizer(Vocabulary&& given) : BpeTokenizer(std::move(given), choose(given)) {}

BpeTokenizer::BpeTokenizer(Vocabulary&& given, const Choice& choice)
    : FamilyTokenizer(std::move(given), {.add_bos = choice.pre.add_bos}),
      pre_(choice.pre),
      ignore_merges_(vocabulary().source().ignore_merges.value_or(choice.pre.ignore_merges)),
      splitter_(choice.stages, choice.own_expressions, vocabulary().source().file) {
  if (!choice.remark.empty()) add_remark(choice.remark);
  for (unsigned b = 0; b < 256; ++b) {
    // Added tokens can look like an alphabet character and mean something else.
    alphabet_[b] = vocabulary().find_normal(alphabet_char(static_cast<std::uint8_t>(b)));
  }
  read_merges();
}

void BpeTokenizer::read_merges() {
  const VocabularySource& source = vocabulary().source();
  if (source.merge_count == 0 || !source.merge)
    throw Error(fmt::format("{}: a vocabulary of model 'gpt2' needs tokenizer.ggml.merges, which is absent or empty",
                            source.file));
  if (source.merge_count >= MergeRule::kNever)
    throw Error(fmt::format("{}: tokenizer.ggml.merges has {} entries, too many", source.file, source.merge_count));
  pairs_.reserve(source.merge_count);
  // In batches, because most of the time goes into waiting for memory (see find_all); measured 295 -> 44 ms for
  // 446,189 merges.
  constexpr std::size_t kBatch = 64;
  std::string products[kBatch];
  std::vector<std::string_view> texts(3 * kBatch);  // left, right and product of each merge
  std::vector<TokenId> ids(3 * kBatch);
  for (std::size_t from = 0; from < source.merge_count; from += kBatch) {
    const std::size_t count = std::min(kBatch, source.merge_count - from);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string_view merge = source.merge(from + i);
      const std::size_t blank = merge.find(' ', 1);
      if (blank == std::string_view::npos)
        throw Error(fmt::format("{}: merge {} is '{}', expected two parts with a blank between them", source.file,
                                from + i, merge));
      texts[3 * i] = merge.substr(0, blank);
      texts[3 * i + 1] = merge.substr(blank + 1);
      products[i].assign(texts[3 * i]).append(texts[3 * i + 1]);
      texts[3 * i + 2] = products[i];
    }
    vocabulary().find_all({texts.data(), 3 * count}, ids);
    for (std::size_t i = 0; i < 3 * count; ++i) {
      if (ids[i] == kNoToken)
        throw Error(fmt::format("{}: merge {} ('{}') speaks of '{}', which is not among the tokens", source.file,
                                from + i / 3, source.merge(from + i / 3), texts[i]));
      if (i % 3 == 1) pairs_.prefetch(ids[i - 1], ids[i]);
    }
    for (std::size_t i = 0; i < count; ++i)
      pairs_.insert(ids[3 * i], ids[3 * i + 1], {static_cast<std::uint32_t>(from + i), ids[3 * i + 2]});
  }
}

void BpeTokenizer::encode_segment(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    if (valid != 0) {
      std::string_view clean = text.substr(0, valid);
      if (pre_.nfc) clean = to_nfc(clean, scratch.segment);
      splitter_.split(clean, scratch.split, [&](std::string_view word) { encode_word(word, scratch, out); });
    }
    text.remove_prefix(valid);
    if (!text.empty()) {  // a bad byte is a word of its own
      encode_word(text.substr(0, 1), scratch, out);
      text.remove_prefix(1);
    }
  }
}

void BpeTokenizer::encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  scratch.cache.append(word, out, [&] { merge_word(word, scratch, out); });
}

void BpeTokenizer::merge_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  scratch.merges.clear();
  if (pre_.byte_alphabet) {
    merge_bytes(word, scratch, out);
  } else {
    merge_characters(word, scratch, out);
  }
}

void BpeTokenizer::merge_bytes(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  if (ignore_merges_ && word.size() <= vocabulary().longest_text()) {
    scratch.word.clear();
    append_spelled(word, scratch.word);
    const TokenId whole = vocabulary().find_normal(scratch.word);
    if (whole != kNoToken) {
      out.push_back(whole);
      return;
    }
  }
  for (std::size_t i = 0; i < word.size(); ++i) {
    const TokenId id = alphabet_[static_cast<std::uint8_t>(word[i])];
    if (id != kNoToken) scratch.merges.add(static_cast<std::uint32_t>(i), 1, id);
  }
  scratch.merges.merge([this](const Symbol& left, const Symbol& right) { return pairs_.find(left.id, right.id); });
  scratch.merges.for_each([&out](const Symbol& symbol) { out.push_back(symbol.id); });
}

void BpeTokenizer::merge_characters(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
  scratch.word.clear();
  append_replaced(word, " ", pre_.escape_blanks ? kLowerOneEighthBlock : " ", scratch.word);
  const std::string_view spelled = scratch.word;
  if (ignore_merges_) {
    const TokenId whole = vocabulary().find_normal(spelled);
    if (whole != kNoToken) {
      out.push_back(whole);
      return;
    }
  }
  for (std::size_t at = 0; at < spelled.size();) {
    const std::size_t length = std::max<std::size_t>(decode_char(spelled.substr(at)).length, 1);
    scratch.merges.add(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(length),
                       vocabulary().find_normal(spelled.substr(at, length)));
    at += length;
  }
  scratch.merges.merge([this](const Symbol& left, const Symbol& right) {
    return left.id == kNoToken || right.id == kNoToken ? MergeRule{} : pairs_.find(left.id, right.id);
  });
  scratch.merges.for_each([&](const Symbol& symbol) {
    if (symbol.id != kNoToken) {
      out.push_back(symbol.id);
    } else {
      push_leftover(spelled.substr(symbol.begin, symbol.length), out);
    }
  });
}

void BpeTokenizer::push_leftover(std::string_view character, std::vector<TokenId>& out) const {
  const bool all_bytes = std::all_of(character.begin(), character.end(), [this](char c) {
    return vocabulary().byte_token(static_cast<std::uint8_t>(c)) != kNoToken;
  });
  if (all_bytes) {
    for (const char c : character) out.push_back(vocabulary().byte_token(static_cast<std::uint8_t>(c)));
  } else if (vocabulary().unknown) {
    out.push_back(*vocabulary().unknown);
  }
}

void BpeTokenizer::append_normal(std::string_view text, std::string& out) const {
  if (pre_.byte_alphabet) {
    append_unspelled(text, out);
  } else {
    append_replaced(text, pre_.escape_blanks ? kLowerOneEighthBlock : std::string_view(" "), " ", out);
  }
}

}  // namespace hk::tokenizer
