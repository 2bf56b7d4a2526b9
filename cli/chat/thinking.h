// Where a model's reasoning begins and ends in what it writes, and how a template wants to be told about it.
//
// Layer: cli/chat.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace hk::cli {

/// The texts around the reasoning of one model family.
struct ThinkFormat {
  std::string_view open;         ///< begins reasoning, at the start of what the model writes
  std::string_view close;        ///< ends it; the answer follows
  std::string_view answer_open;  ///< begins an answer without reasoning; "": nothing does
  std::string_view mark;         ///< a template or vocabulary of the family holds this text
};

/// What the template, or else the vocabulary, makes of reasoning; null when it knows none.
const ThinkFormat* find_think_format(const tokenizer::ChatTemplate& chat_template,
                                     const tokenizer::Tokenizer& tokenizer);

/// Control tokens that spell the marks of `format`: their texts must not be left out of the answer.
std::vector<tokenizer::TokenId> think_tokens(const ThinkFormat& format, const tokenizer::Tokenizer& tokenizer);

/// The prompt ends inside reasoning: its template has opened it.
bool ends_in_open_reasoning(const ThinkFormat& format, std::string_view prompt);

/// Variables by which templates are told to think or not, of those that `chat_template` reads.
std::vector<std::string_view> think_switches(const tokenizer::ChatTemplate& chat_template);

/// How earlier reasoning is given to a template, which then decides whether it is part of the prompt.
enum class EarlierReasoning {
  kDropped,   ///< the template would print it like an answer: left out
  kField,     ///< message.reasoning_content
  kThinking,  ///< message.thinking
  kContent,   ///< in the content, from which the template cuts it
};
EarlierReasoning earlier_reasoning(const tokenizer::ChatTemplate& chat_template, const ThinkFormat* format);

/// Takes an answer apart as it arrives.
class ThinkSplitter {
 public:
  struct Piece {
    std::string text;
    bool reasoning;
  };
  /// `format`: null when everything is answer. `inside`: the prompt has opened the reasoning.
  ThinkSplitter(const ThinkFormat* format, bool inside);

  std::vector<Piece> push(std::string_view text);
  std::vector<Piece> finish();
  bool reasoning() const { return state_ == State::kReasoning; }

 private:
  enum class State { kBegin, kReasoning, kAfter, kAnswer };
  /// Moves what is certain from held_ to `out`; true when the state changed and there may be more.
  bool step(std::vector<Piece>& out, bool last);
  void emit(std::vector<Piece>& out, std::size_t bytes, bool reasoning);

  const ThinkFormat* format_;
  State state_;
  std::string held_;
  bool reasoning_begun_ = false;
};

}  // namespace hk::cli
