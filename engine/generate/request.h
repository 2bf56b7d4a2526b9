// What the scheduler is asked and what it answers.
//
// Layer: engine/generate. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generate/generator.h"
#include "engine/generate/logprobs.h"
#include "engine/generate/sampler_settings.h"

namespace hk::engine {

/// A text whose tokens from `from` on are scored: how likely each is after everything before it.
struct ScoredText {
  std::vector<TokenId> tokens;
  std::size_t from = 1;  ///< at least 1: nothing says how likely a first token is
};

/// Either `scored` is not empty (nothing is generated then), or `prompt` is continued.
struct Request {
  std::vector<TokenId> prompt;
  SamplerSettings sampling;               ///< `seed` should be set: a random one cannot be repeated
  std::size_t samples = 1;                ///< independent answers to the prompt
  std::optional<std::size_t> max_tokens;  ///< absent: until the model ends or the context is full
  std::vector<std::string> stop;
  bool stop_at_eog = true;
  bool show_special = false;
  bool fresh_text = false;              ///< see GenerateOptions
  std::optional<std::size_t> logprobs;  ///< score each token, with this many alternatives
  bool prompt_logprobs = false;         ///< score the prompt's tokens too (needs `logprobs`)
  std::vector<ScoredText> scored;
  /// Text of answer `sample` as it becomes certain.
  std::function<void(std::size_t sample, std::string_view text)> on_text;
};

struct Answer {
  std::string text;
  std::vector<TokenId> tokens;  ///< sampled, without the end token
  FinishReason reason = FinishReason::kEndOfGeneration;
  std::optional<TokenId> end_token;
  std::string stop;                ///< the stop string that was found
  std::vector<TokenScore> scores;  ///< of `tokens`, when asked for
  std::uint64_t seed = 0;
};

struct TextScore {
  double logprob = 0;  ///< sum over the scored tokens
  bool greedy = true;  ///< every scored token is what temperature 0 would have picked
  std::vector<TokenScore> tokens;
};

struct Response {
  std::vector<Answer> answers;            ///< one a sample
  std::vector<TextScore> scores;          ///< one a scored text
  std::vector<TokenScore> prompt_scores;  ///< of the prompt's tokens but the first, when asked for
  std::string error;                      ///< a sentence when the request failed; then nothing else counts
  bool cancelled = false;
  std::size_t prompt_tokens = 0;     ///< of scored texts: all tokens
  std::size_t cached_tokens = 0;     ///< of those, taken from what other requests had computed
  std::size_t generated_tokens = 0;  ///< sampled, end tokens included
  double waited_seconds = 0;         ///< until its first token was read
  double prefill_seconds = 0;        ///< from there until the first answer began
  double decode_seconds = 0;         ///< from there until the last answer ended
};

}  // namespace hk::engine
