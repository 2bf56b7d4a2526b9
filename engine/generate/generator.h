// From a prompt to an answer: reads the prompt, then samples and computes token after token until something ends it.
//
// Layer: engine/generate. Why it ended is always told, and nothing that was computed is lost: a full context, a stop
// request and a limit all leave the session usable and the text so far in the result.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generate/logprobs.h"
#include "engine/generate/sampler.h"
#include "engine/generate/session.h"
#include "tokenizer/tokenizer.h"

namespace hk::engine {

struct GenerateOptions {
  std::optional<std::size_t> max_tokens;  ///< absent: until the model ends or the context is full
  std::vector<std::string> stop;          ///< the text ends before the first of these
  bool stop_at_eog = true;
  bool show_special = false;            ///< texts of control tokens are part of the answer
  bool fresh_text = false;              ///< the answer is a text of its own: no prefix blank at its start
  std::vector<TokenId> shown_tokens;    ///< control tokens whose texts are part of the answer in any case
  std::optional<std::size_t> logprobs;  ///< score each token, with this many alternatives
  std::size_t prefill_chunk = kPrefillChunk;
  /// Valid UTF-8, as soon as it is certain. May throw; the session stays consistent.
  std::function<void(std::string_view text)> on_text;
  /// Prompt tokens read, of those that were not cached.
  std::function<void(std::size_t done, std::size_t total)> on_prefill;
  /// Told every token of the answer. What it returns comes next, as if it had been sampled: to end a part of the answer
  /// that has become too long.
  std::function<std::vector<TokenId>(TokenId id)> on_token;
  /// Asked all the time; true ends the answer.
  std::function<bool()> cancelled;
};

enum class FinishReason : std::uint8_t {
  kEndOfGeneration,  ///< the model ended its text
  kStopString,
  kLength,  ///< max_tokens
  kContextFull,
  kCancelled,
};
std::string_view finish_reason_name(FinishReason reason);  ///< "end", "stop", "length", "context full", "cancelled"

struct GenerateStatistics {
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;     ///< of the prompt, found in the session
  std::size_t prefilled_tokens = 0;  ///< of the prompt, read now
  std::size_t generated_tokens = 0;  ///< sampled, the end token included
  std::size_t decoded_tokens = 0;    ///< forward passes of one token: what `decode_seconds` was spent on
  double prefill_seconds = 0;
  double decode_seconds = 0;  ///< forward passes and sampling after the prompt
  double prefill_rate() const { return rate(prefilled_tokens, prefill_seconds); }  ///< tokens a second
  double decode_rate() const { return rate(decoded_tokens, decode_seconds); }

 private:
  static double rate(std::size_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  }
};

struct GenerateResult {
  std::string text;                ///< all that went to on_text
  std::vector<TokenId> tokens;     ///< sampled (or given by on_token), without the end token
  std::vector<TokenScore> scores;  ///< of `tokens`, when asked for
  FinishReason reason = FinishReason::kEndOfGeneration;
  std::optional<TokenId> end_token;
  std::string stop;  ///< the stop string that was found
  GenerateStatistics statistics;
};

/// Throws hk::Error for an empty prompt or one that does not fit the context (nothing is computed then), and what the
/// model or the sampler throws.
GenerateResult generate(Session& session, const tokenizer::Tokenizer& tokenizer, Sampler& sampler,
                        std::span<const TokenId> prompt, const GenerateOptions& options = {});

}  // namespace hk::engine
