// Picks the next token from logits: the chain of SamplerSettings, with its memory of the text so far and its random
// numbers.
//
// Layer: engine/generate. The same settings, seed, history and logits give the same ids, on every machine with the same
// libm. The rules of each step are written down at SamplerStep, Penalties and below for Mirostat; they follow the
// papers and the behaviour that users of llama.cpp know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/generate/candidates.h"
#include "engine/generate/penalties.h"
#include "engine/generate/random.h"
#include "engine/generate/sampler_settings.h"

namespace hk::engine {

class Sampler {
 public:
  /// `end_ids`: banned with ignore_eos. `piece`: only used by DRY. Throws hk::Error (usage) for impossible settings.
  Sampler(SamplerSettings settings, std::size_t vocab_size, std::span<const TokenId> end_ids = {},
          PieceFunction piece = {});

  /// Picks from vocab_size logits; the caller then `accept`s the token. Throws hk::Error for NaN logits.
  TokenId sample(std::span<const float> logits);
  /// The same with buffers of the caller's, so that many samplers need not have their own (some bytes for each token
  /// of the vocabulary).
  TokenId sample(std::span<const float> logits, Candidates& buffers);
  /// Adds a token to the history that penalties look at.
  void accept(TokenId id) { penalties_.accept(id); }
  /// Replaces the history (at the start of an answer, with everything before it). The random stream and Mirostat go on.
  void set_history(std::span<const TokenId> history);

  std::uint64_t seed() const { return seed_; }  ///< the one in use, also when it was chosen at random
  const SamplerSettings& settings() const { return settings_; }

 private:
  void apply(SamplerStep step);
  /// Mirostat (Basu et al. 2021): keeps the tokens whose surprise fits the running limit, draws, and moves the limit
  /// towards the wanted surprise by eta times the error. Version 1 derives a k from the estimated Zipf exponent of the
  /// 100 best tokens, version 2 cuts at the limit itself. Surprise is measured under the distribution before the cut,
  /// as in the paper.
  TokenId sample_mirostat();

  SamplerSettings settings_;
  std::size_t vocab_size_;
  std::vector<TokenId> end_ids_;
  Penalties penalties_;
  std::uint64_t seed_;
  RandomStream random_;
  Candidates candidates_;
  double surprise_limit_;  // Mirostat's mu
};

}  // namespace hk::engine
