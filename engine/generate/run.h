// One sequence on its way through the scheduler: an answer being generated or a text being scored.
//
// Layer: engine/generate, part of the scheduler. Knows which tokens are still to be computed and what to do with the
// logits; not when. `tokens` is all there is to know of its past: a run that loses its sequence computes it again, with
// the same results (the promise of model.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/generate/answer_text.h"
#include "engine/generate/prefix_cache.h"
#include "engine/generate/request.h"
#include "engine/generate/sampler.h"

namespace hk::engine {

/// A request and what is known of its response; its runs point to it.
struct RequestState {
  using Clock = std::chrono::steady_clock;
  std::uint64_t handle = 0;
  Request request;
  Response response;
  std::function<void(Response&&)> done;
  std::size_t open_runs = 0;
  bool started = false;  ///< one of its runs was given a slot
  bool over = false;     ///< answered, or to be answered at the next occasion
  Clock::time_point submitted = Clock::now();
  std::optional<Clock::time_point> begun, answering;
};

struct Run {
  RequestState* owner = nullptr;
  std::size_t index = 0;  ///< of the answer or the scored text
  std::vector<TokenId> tokens;
  std::size_t prompt_length = 0;
  std::size_t score_from = 0;  ///< tokens from here to prompt_length are scored; prompt_length: none
  bool generates = false;
  std::vector<TokenScore> prompt_scores;  ///< grows from score_from on

  std::unique_ptr<Sequence> sequence;  ///< null until started, and after its memory was taken away
  PrefixCache::Pin pin;
  std::size_t shared = 0;     ///< positions that came from `pin`
  std::size_t announced = 0;  ///< length of the path that the cache expects; 0: withdrawn
  std::size_t reached = 0;    ///< most positions that were ever computed or shared; below it work is repeated
  bool finished = false;
  std::optional<Sampler> sampler;
  std::optional<AnswerText> text;

  std::size_t computed() const { return sequence == nullptr ? 0 : sequence->length(); }
  /// Tokens that must be computed; the last token of a scored text leads nowhere.
  std::size_t wanted() const { return generates ? tokens.size() : tokens.size() - 1; }
  std::size_t pending() const { return wanted() - computed(); }
  std::size_t next_score() const { return score_from + prompt_scores.size(); }
  bool scoring() const { return next_score() < prompt_length; }
  /// The part of the tokens whose logits nobody needs again: it may come from the cache.
  std::size_t reusable() const { return scoring() ? next_score() - 1 : tokens.size() - 1; }
  std::span<const TokenId> path() const { return std::span(tokens).first(reusable()); }

  Answer& answer() { return owner->response.answers[index]; }
  /// Takes a sampled token; true when the answer is complete.
  bool accept(TokenId id, std::size_t capacity, const tokenizer::Tokenizer& tokenizer);
  /// Flushes held back text and notes why it ended.
  void finish(FinishReason reason);

 private:
  void emit(const std::string& piece);
};

}  // namespace hk::engine
