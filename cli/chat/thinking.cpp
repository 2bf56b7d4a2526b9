// Marks of reasoning (see thinking.h).
#include "cli/chat/thinking.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hk::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// One row a family of marks. The first whose mark the template holds is taken.
constexpr std::array kFormats = {
    ThinkFormat{"<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>",
                "<|channel|>final<|message|>", "<|channel|>analysis"},
    ThinkFormat{"<|START_THINKING|>", "<|END_THINKING|>", "", "<|END_THINKING|>"},
    ThinkFormat{"[THINK]", "[/THINK]", "", "[/THINK]"},
    ThinkFormat{"<seed:think>", "</seed:think>", "", "</seed:think>"},
    ThinkFormat{"<think>", "</think>", "", "</think>"},
};

// Read by Qwen3, GLM, SmolLM3 and Nemotron; by DeepSeek-V3.1 and Granite.
constexpr std::array<std::string_view, 2> kSwitches = {"enable_thinking", "thinking"};

bool is_name_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// `source` reads a variable of this name: within a tag, not in a text, and not the attribute of something.
bool reads_variable(std::string_view source, std::string_view name) {
  bool in_tag = false;
  for (std::size_t at = 0; at < source.size(); ++at) {
    const std::string_view rest = source.substr(at);
    if (!in_tag) {
      if (rest.starts_with("{#")) {
        at = std::min(source.find("#}", at), source.size());
      } else if (rest.starts_with("{{") || rest.starts_with("{%")) {
        in_tag = true;
        ++at;
      }
    } else if (rest.starts_with("}}") || rest.starts_with("%}")) {
      in_tag = false;
    } else if (source[at] == '\'' || source[at] == '"') {
      const char quote = source[at];
      for (++at; at < source.size() && source[at] != quote; ++at)
        if (source[at] == '\\') ++at;
    } else if (is_name_byte(source[at])) {
      const std::size_t begin = at;
      while (at + 1 < source.size() && is_name_byte(source[at + 1])) ++at;
      if (source.substr(begin, at + 1 - begin) == name && source[begin - 1] != '.') return true;
    }
  }
  return false;
}

/// Length of the longest end of `text` that is a beginning of `mark`.
std::size_t partial_match(std::string_view text, std::string_view mark) {
  for (std::size_t length = std::min(text.size(), mark.size() - 1); length > 0; --length)
    if (text.ends_with(mark.substr(0, length))) return length;
  return 0;
}

}  // namespace

const ThinkFormat* find_think_format(const tokenizer::ChatTemplate& chat_template,
                                     const tokenizer::Tokenizer& tokenizer) {
  for (const ThinkFormat& format : kFormats)
    if (chat_template.source().find(format.mark) != std::string_view::npos) return &format;
  for (const ThinkFormat& format : kFormats)
    if (tokenizer.find_special(format.open) && tokenizer.find_special(format.close)) return &format;
  return nullptr;
}

std::vector<tokenizer::TokenId> think_tokens(const ThinkFormat& format, const tokenizer::Tokenizer& tokenizer) {
  std::vector<tokenizer::TokenId> ids;
  for (const std::string_view text : {format.open, format.close, format.answer_open})
    for (const auto id : tokenizer.encode(text, {.add_special = false, .parse_special = true}))
      if (tokenizer.is_control(id)) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool ends_in_open_reasoning(const ThinkFormat& format, std::string_view prompt) {
  const auto end = prompt.find_last_not_of(kBlanks);
  return end != std::string_view::npos && prompt.substr(0, end + 1).ends_with(format.open);
}

std::vector<std::string_view> think_switches(const tokenizer::ChatTemplate& chat_template) {
  std::vector<std::string_view> found;
  for (const std::string_view name : kSwitches)
    if (reads_variable(chat_template.source(), name)) found.push_back(name);
  return found;
}

EarlierReasoning earlier_reasoning(const tokenizer::ChatTemplate& chat_template, const ThinkFormat* format) {
  const std::string_view source = chat_template.source();
  const auto holds = [&](const std::string& text) { return source.find(text) != std::string_view::npos; };
  if (format == nullptr) return EarlierReasoning::kDropped;
  if (holds("reasoning_content")) return EarlierReasoning::kField;
  if (holds("message.thinking") || holds("message['thinking']")) return EarlierReasoning::kThinking;
  const std::string close(format->close);
  if (holds("split('" + close + "')") || holds("split(\"" + close + "\")")) return EarlierReasoning::kContent;
  return EarlierReasoning::kDropped;
}

ThinkSplitter::ThinkSplitter(const ThinkFormat* format, bool inside)
    : format_(format),
      state_(format == nullptr ? State::kAnswer
             : inside          ? State::kReasoning
                               : State::kBegin) {}

void ThinkSplitter::emit(std::vector<Piece>& out, std::size_t bytes, bool reasoning) {
  if (bytes != 0) out.push_back({held_.substr(0, bytes), reasoning});
  held_.erase(0, bytes);
}

bool ThinkSplitter::step(std::vector<Piece>& out, bool last) {
  switch (state_) {
    case State::kBegin: {
      const auto begin = std::min(held_.find_first_not_of(kBlanks), held_.size());
      const std::string_view text = std::string_view(held_).substr(begin);
      for (const auto& [mark, next] :
           {std::pair{format_->open, State::kReasoning}, std::pair{format_->answer_open, State::kAnswer}}) {
        if (mark.empty()) continue;
        if (text.starts_with(mark)) {
          held_.erase(0, begin + mark.size());
          state_ = next;
          return true;
        }
        if (!last && mark.starts_with(text)) return false;
      }
      state_ = State::kAnswer;
      return true;
    }
    case State::kReasoning: {
      // Blanks around the reasoning belong to the marks.
      if (!reasoning_begun_) held_.erase(0, held_.find_first_not_of(kBlanks));
      reasoning_begun_ = reasoning_begun_ || !held_.empty();
      const auto found = held_.find(format_->close);
      if (found != std::string::npos) {
        const auto end = held_.substr(0, found).find_last_not_of(kBlanks);
        emit(out, end == std::string::npos ? 0 : end + 1, true);
        held_.erase(0, held_.find(format_->close) + format_->close.size());
        state_ = State::kAfter;
        return true;
      }
      std::size_t safe = held_.size();
      if (!last) safe -= partial_match(held_, format_->close);
      const auto end = std::string_view(held_).substr(0, safe).find_last_not_of(kBlanks);
      if (!last) safe = end == std::string::npos ? 0 : end + 1;
      emit(out, safe, true);
      return false;
    }
    case State::kAfter: {
      held_.erase(0, held_.find_first_not_of(kBlanks));
      if (held_.empty()) return false;
      state_ = State::kAnswer;
      return true;
    }
    case State::kAnswer:
      emit(out, held_.size(), false);
      return false;
  }
  return false;
}

std::vector<ThinkSplitter::Piece> ThinkSplitter::push(std::string_view text) {
  std::vector<Piece> out;
  held_ += text;
  while (step(out, false)) {
  }
  return out;
}

std::vector<ThinkSplitter::Piece> ThinkSplitter::finish() {
  std::vector<Piece> out;
  while (step(out, true)) {
  }
  return out;
}

}  // namespace hk::cli
