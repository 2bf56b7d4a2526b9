// The rules for tokens that end generation.
#include "tokenizer/eog.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

namespace hk::tokenizer {
namespace {

// End of turn or text, or a fill-in marker that a model writes when it has gone past its answer.
constexpr std::string_view kEndTexts[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|calls|>",
                                          "<|flush|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "<|end_of_text|>",
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "[EOT]",
                                          "[EOS]",
                                          "<|EOT|>",
                                          "<end_of_utterance>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<｜end▁of▁sentence｜>",
                                          "[e~[",
                                          "<|fim_pad|>",
                                          "<fim-pad>",
                                          "<fim_pad>",
                                          "<PAD>",
                                          "<|fim_repo|>",
                                          "<|repo_name|>",
                                          "<fim-repo>",
                                          "<REPO>",
                                          "<reponame>",
                                          "<|file_sep|>"};
// Common as ordinary tokens too, so they only count when they are typed control.
constexpr std::string_view kControlEndTexts[] = {"</s>", "<eos>"};

template <typename List>
bool contains(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

}  // namespace

std::vector<TokenId> end_of_generation_ids(const Vocabulary& vocabulary) {
  const VocabularySource& source = vocabulary.source();
  std::vector<TokenId> ids;
  bool has_return = false, has_call = false, has_flush = false, has_tool_response = false;
  std::vector<TokenId> message_ends;  // <|end|>
  std::vector<TokenId> closing_tags;  // </s>
  const auto add_by_text = [&](TokenId id, std::string_view text) {
    if (text == "<|end|>") {
      message_ends.push_back(id);
    } else if (text == "</s>") {
      closing_tags.push_back(id);
    } else {
      ids.push_back(id);
    }
  };
  for (TokenId id = 0; static_cast<std::size_t>(id) < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    if (type != TokenType::kControl && type != TokenType::kUserDefined) continue;
    const std::string_view text = vocabulary.text(id);
    has_return = has_return || text == "<|return|>";
    has_call = has_call || text == "<|call|>" || text == "<|calls|>";
    has_flush = has_flush || text == "<|flush|>";
    has_tool_response = has_tool_response || text == "<|tool_response>";
    if (contains(kEndTexts, text) || (type == TokenType::kControl && contains(kControlEndTexts, text)))
      add_by_text(id, text);
  }
  for (const auto& id : {source.eot, source.eom})
    if (id && vocabulary.contains(*id)) add_by_text(*id, vocabulary.text(*id));
  // One message of several ends with <|end|> where <|return|> or <|flush|> end the answer.
  if (!(has_call && (has_return || has_flush))) ids.insert(ids.end(), message_ends.begin(), message_ends.end());
  if (!has_tool_response) ids.insert(ids.end(), closing_tags.begin(), closing_tags.end());
  // What the model itself names is beyond doubt.
  if (vocabulary.eos) ids.push_back(*vocabulary.eos);
  for (const TokenId id : source.eog_ids)
    if (vocabulary.contains(id)) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace hk::tokenizer
