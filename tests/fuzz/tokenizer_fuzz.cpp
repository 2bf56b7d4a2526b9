// libFuzzer target: arbitrary bytes through small vocabularies of both families and every pre-tokenizer.
//
// The first bytes of the input pick vocabulary, pre-tokenizer and options; the rest is the text. What must hold: no
// crash, and decoding gives the bytes back where nothing rewrites them (NFC, U+2581).
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/pretokenizers.h"
#include "tokenizer/tokenizer.h"

namespace {

using hk::tokenizer::PreTokenizer;
using hk::tokenizer::TokenId;
using hk::tokenizer::Tokenizer;

struct Lists {
  std::vector<std::string> tokens;
  std::vector<std::string> merges;
  std::vector<float> scores;
  std::vector<std::int32_t> types;

  void add(const std::string& text, std::int32_t type, float score = 0) {
    tokens.push_back(text);
    types.push_back(type);
    scores.push_back(score);
  }
  hk::tokenizer::VocabularySource source(std::string_view model) const {
    hk::tokenizer::VocabularySource made;
    made.file = "fuzz";
    made.model = model;
    made.token_count = tokens.size();
    made.token = [this](std::size_t i) -> std::string_view { return tokens[i]; };
    made.merge_count = merges.size();
    made.merge = [this](std::size_t i) -> std::string_view { return merges[i]; };
    made.token_types = types;
    made.scores = scores;
    return made;
  }
};

void add_specials(Lists& lists) {
  lists.add("<|a|>", 3);
  lists.add("<|a|><|", 4);
  lists.add("  ", 4);
}

const Lists& byte_level() {
  static const Lists lists = [] {
    Lists made;
    for (int b = 0; b < 256; ++b) made.add(std::string(hk::tokenizer::alphabet_char(static_cast<std::uint8_t>(b))), 1);
    const std::string blank(hk::tokenizer::alphabet_char(' '));
    const std::array<std::pair<std::string, std::string>, 9> merges = {
        {{"a", "b"},
         {"b", "c"},
         {"ab", "c"},
         {blank, blank},
         {blank + blank, blank + blank},
         {blank, "a"},
         {"1", "2"},
         {std::string(hk::tokenizer::alphabet_char(0xC3)), std::string(hk::tokenizer::alphabet_char(0xA9))},
         {"ab", "ab"}}};
    for (const auto& [left, right] : merges) {
      made.add(left + right, 1);
      made.merges.push_back(left + " " + right);
    }
    add_specials(made);
    return made;
  }();
  return lists;
}

const Lists& characters() {
  static const Lists lists = [] {
    Lists made;
    for (unsigned b = 0; b < 256; ++b) {
      char text[8];
      std::snprintf(text, sizeof text, "<0x%02X>", b);
      made.add(text, 6);
    }
    for (const char* text : {"a", "b", "ab", "▁", "▁a", "▁▁", "▁▁▁▁", "é", "\n", "\n\n"})
      made.add(text, 1, -static_cast<float>(made.tokens.size()));
    made.merges = {"a b", "▁ a", "▁ ▁", "▁▁ ▁▁", "\n \n"};
    add_specials(made);
    return made;
  }();
  return lists;
}

struct Subject {
  std::unique_ptr<Tokenizer> tokens;
  bool exact;  // blanks and characters come back as they were
};

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = [] {
    std::vector<Subject> made;
    for (const std::string_view name : hk::tokenizer::pre_tokenizer_names()) {
      const PreTokenizer& pre = *hk::tokenizer::find_pre_tokenizer(name);
      auto source = (pre.byte_alphabet ? byte_level() : characters()).source("gpt2");
      source.pre = name;
      made.push_back({Tokenizer::create(source), !pre.nfc && !pre.escape_blanks});
    }
    for (const bool prefix : {false, true}) {
      auto source = characters().source("llama");
      source.add_space_prefix = prefix;
      made.push_back({Tokenizer::create(source), false});
    }
    return made;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Subject& subject = subjects()[data[0] % subjects().size()];
  const bool parse_special = (data[1] & 1) != 0;
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto ids = subject.tokens->encode(text, {(data[1] & 2) != 0, parse_special});
  const std::string back = subject.tokens->decode(ids, false);
  if (subject.exact && back != text) std::abort();
  hk::tokenizer::TextStream stream(*subject.tokens, (data[1] & 4) != 0, true);
  for (const TokenId id : ids)
    if (!hk::is_valid_utf8(stream.push(id))) std::abort();
  if (!hk::is_valid_utf8(stream.finish())) std::abort();
  return 0;
}
