// The token loop.
#include "engine/generate/generator.h"

#include <fmt/format.h>

#include <chrono>
#include <deque>

#include "base/error.h"
#include "engine/generate/answer_text.h"

namespace hk::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void check_prompt(const Session& session, std::span<const TokenId> prompt) {
  if (prompt.empty()) throw Error("the prompt is empty: there is no token to go on from");
  if (prompt.size() > session.capacity())
    throw Error(fmt::format(
        "the prompt has {} tokens, but the context holds {}; a shorter prompt or a larger context is needed",
        prompt.size(), session.capacity()));
}

/// Answer text on its way to the result and the listener.
class Answer {
 public:
  Answer(const tokenizer::Tokenizer& tokenizer, const GenerateOptions& options, GenerateResult& result)
      : options_(options),
        result_(result),
        text_(tokenizer, options.stop, options.show_special, options.fresh_text, options.shown_tokens) {}

  void push(TokenId id) { emit(text_.push(id)); }
  void finish() { emit(text_.finish()); }
  bool stopped() const { return text_.stopped(); }
  std::string_view stop() const { return text_.stop(); }

 private:
  void emit(const std::string& text) {
    if (text.empty()) return;
    result_.text += text;
    if (options_.on_text) options_.on_text(text);
  }

  const GenerateOptions& options_;
  GenerateResult& result_;
  AnswerText text_;
};

FinishReason decode(Session& session, const tokenizer::Tokenizer& tokenizer, Sampler& sampler,
                    std::span<const float> logits, const GenerateOptions& options, Answer& answer,
                    GenerateResult& result) {
  const ForwardControl control{options.cancelled, {}};
  auto& statistics = result.statistics;
  std::deque<TokenId> given;  // by on_token
  while (true) {
    if (options.max_tokens && result.tokens.size() >= *options.max_tokens) return FinishReason::kLength;
    if (options.cancelled && options.cancelled()) return FinishReason::kCancelled;
    TokenId id = 0;
    if (given.empty()) {
      id = sampler.sample(logits);
    } else {
      id = given.front();
      given.pop_front();
    }
    sampler.accept(id);
    ++statistics.generated_tokens;
    if (options.stop_at_eog && tokenizer.is_eog(id)) {
      result.end_token = id;
      return FinishReason::kEndOfGeneration;
    }
    result.tokens.push_back(id);
    if (options.logprobs) result.scores.push_back(score_token(logits, id, *options.logprobs));
    answer.push(id);
    if (answer.stopped()) return FinishReason::kStopString;
    if (options.on_token) {
      const auto next = options.on_token(id);
      given.insert(given.end(), next.begin(), next.end());
    }
    // The logits after the last token would not be used.
    if (options.max_tokens && result.tokens.size() >= *options.max_tokens) return FinishReason::kLength;
    if (session.room() == 0) return FinishReason::kContextFull;
    logits = session.append({&id, 1}, control);
    if (logits.empty()) return FinishReason::kCancelled;
    ++statistics.decoded_tokens;
  }
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEndOfGeneration:
      return "end";
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kContextFull:
      return "context full";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

GenerateResult generate(Session& session, const tokenizer::Tokenizer& tokenizer, Sampler& sampler,
                        std::span<const TokenId> prompt, const GenerateOptions& options) {
  check_prompt(session, prompt);
  GenerateResult result;
  auto& statistics = result.statistics;
  auto start = Clock::now();
  statistics.prompt_tokens = prompt.size();
  statistics.cached_tokens = session.reuse(prompt);
  sampler.set_history(prompt);
  const auto logits = session.append(prompt.subspan(statistics.cached_tokens),
                                     ForwardControl{options.cancelled, options.on_prefill}, options.prefill_chunk);
  statistics.prefill_seconds = seconds_since(start);
  statistics.prefilled_tokens = session.history().size() - statistics.cached_tokens;
  if (logits.empty()) {
    result.reason = FinishReason::kCancelled;
    return result;
  }
  start = Clock::now();
  Answer answer(tokenizer, options, result);
  result.reason = decode(session, tokenizer, sampler, logits, options, answer, result);
  statistics.decode_seconds = seconds_since(start);
  answer.finish();
  if (result.reason == FinishReason::kStopString) result.stop = answer.stop();
  return result;
}

}  // namespace hk::engine
