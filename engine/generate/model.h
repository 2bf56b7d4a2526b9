// What a language model does, without naming any: sequences with state, and a forward pass over a batch of them.
//
// Layer: engine/generate. models/ implements it; sessions, batching and the command line drive it.
// Promise (tested): the logits of a sequence's position depend on that sequence's tokens alone, bit for bit; not on the
// thread count, on what else is in the batch, nor on how its tokens were cut into calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"

namespace hk::engine {

using TokenId = std::int32_t;

struct ModelInfo {
  std::string architecture;        ///< general.architecture
  std::string name;                ///< general.name or ""
  std::size_t vocab_size = 0;      ///< width of a logits row
  std::size_t context_length = 0;  ///< trained context
  std::size_t layers = 0;
  std::uint64_t parameters = 0;
  std::uint64_t weight_bytes = 0;            ///< bytes of all tensors that a forward pass can touch
  std::uint64_t weight_bytes_per_token = 0;  ///< bytes read to decode one token
  std::vector<std::string> remarks;          ///< what the file holds but the model does not use, one sentence each
};

struct SequenceOptions {
  std::size_t context_length;  ///< most positions the sequence may hold; also decides long-rope factors
  kernels::KvType kv = kernels::KvType::kF16;
};

/// State of one conversation: KV pages (and later recurrent state). Made by a Model, used only with it.
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual std::size_t length() const = 0;         ///< positions computed so far
  virtual std::size_t capacity() const = 0;       ///< context_length of the options
  virtual std::uint64_t state_bytes() const = 0;  ///< memory held for this sequence
  /// Forgets positions from `length` on. Returns the length really kept (a recurrent model may have to go further
  /// back).
  virtual std::size_t truncate(std::size_t length) = 0;
  /// A copy that shares all full pages with this one.
  virtual std::unique_ptr<Sequence> fork() const = 0;
};

enum class LogitsFor : std::uint8_t { kNone, kLast, kAll };

struct BatchItem {
  Sequence* sequence;
  std::span<const TokenId> tokens;  ///< appended to the sequence
  LogitsFor logits = LogitsFor::kLast;
};

struct ForwardControl {
  /// Asked between layers; return true to stop. The sequences then stay as they were before the call.
  std::function<bool()> cancelled;
  /// Tokens done of the tokens of this call.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  virtual std::unique_ptr<Sequence> new_sequence(const SequenceOptions& options) = 0;
  /// KV bytes a sequence needs for `positions`.
  virtual std::uint64_t state_bytes(const SequenceOptions& options, std::size_t positions) const = 0;
  /// Appends each item's tokens and computes the wanted logits: rows of info().vocab_size floats, items in order,
  /// positions in order. The span is valid until the next call. Throws hk::Error for ids out of range or a full
  /// context, before any state changes. Returns an empty span when cancelled.
  virtual std::span<const float> forward(std::span<const BatchItem> items, const ForwardControl& control = {}) = 0;
  /// Private memory the model holds besides sequences.
  virtual std::uint64_t scratch_bytes() const = 0;
  /// What that will be after a prompt of `positions`, when calls want up to `logit_rows` rows of logits; found out
  /// before anything is computed.
  virtual std::uint64_t expected_scratch_bytes(std::size_t positions, std::size_t logit_rows = 1) const {
    static_cast<void>(positions), static_cast<void>(logit_rows);
    return scratch_bytes();
  }
};

}  // namespace hk::engine
