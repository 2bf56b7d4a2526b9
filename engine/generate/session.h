// One conversation with a model: its sequence and the tokens in it, with re-use of what a new prompt shares with the
// old text.
//
// Layer: engine/generate. `history()` is always exactly what the model's state holds.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/generate/keepable_state.h"
#include "engine/generate/model.h"

namespace hk::engine {

/// Tokens of one forward call while reading a prompt. Large enough for full matrix tiles, small enough that a stop
/// request is heard and a stopped prompt keeps what was read. Results do not depend on it (the promise of model.h).
inline constexpr std::size_t kPrefillChunk = 512;

class Session {
 public:
  Session(Model& model, const SequenceOptions& options);

  Model& model() const { return model_; }
  std::span<const TokenId> history() const { return history_; }
  std::size_t capacity() const { return sequence_->capacity(); }
  std::size_t room() const { return capacity() - history_.size(); }
  std::uint64_t state_bytes() const { return sequence_->state_bytes(); }

  /// Makes the state hold a beginning of `prompt`, as long as possible but never all of it (the last token's logits are
  /// wanted). Returns its length. Only what differs is forgotten.
  std::size_t reuse(std::span<const TokenId> prompt);
  /// Reads `tokens` in chunks; the logits after the last one, or an empty span when cancelled (chunks that were done
  /// stay). Throws hk::Error when they do not fit, before anything is read.
  std::span<const float> append(std::span<const TokenId> tokens, const ForwardControl& control = {},
                                std::size_t chunk = kPrefillChunk);
  /// Forgets everything.
  void clear() { truncate(0); }
  /// Another session with the same past, which shares the memory of it.
  std::unique_ptr<Session> fork() const;

  /// Null when the state cannot be kept.
  const KeepableState* keepable() const { return dynamic_cast<const KeepableState*>(sequence_.get()); }
  /// Makes an empty session what one was that held `history` and whose state was `parts`. False when they do not fit.
  bool restore(std::vector<TokenId> history, std::span<const StatePart> parts);

 private:
  Session(const Session& other, std::unique_ptr<Sequence> sequence);
  void truncate(std::size_t length);

  Model& model_;
  std::unique_ptr<Sequence> sequence_;
  std::vector<TokenId> history_;
};

}  // namespace hk::engine
