// Speed of a model: reads made-up prompts, generates greedily, takes the time, and sums up what came out.
//
// Layer: engine/generate. A test may start at a depth (positions already in the context) and run several sequences side
// by side. What is generated depends on the test alone, so equal checksums say that two runs computed the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/generate/model.h"

namespace hk::engine {

struct SpeedTest {
  std::size_t prompt = 0;     ///< tokens of each sequence's prompt
  std::size_t generate = 0;   ///< tokens generated after it, for each sequence
  std::size_t depth = 0;      ///< positions in the context before
  std::size_t sequences = 1;  ///< side by side
  std::size_t chunk = 512;    ///< tokens of one forward call while reading
  std::size_t positions() const { return depth + prompt + generate; }
};

struct SpeedSample {
  double prompt_seconds = 0;
  double generate_seconds = 0;
  double first_token_seconds = 0;  ///< until the first token of every sequence is known; 0 without a prompt
  std::uint64_t checksum = 0;      ///< of all ids in order
  double seconds() const { return prompt_seconds + generate_seconds; }
};

/// Runs tests on one model with one kind of state. The context before a test is computed once and shared.
class SpeedBed {
 public:
  /// `options.context_length` must hold every test's positions().
  SpeedBed(Model& model, const SequenceOptions& options);

  /// Absent when cancelled. `prompt_done` is called between reading and generating. Throws what the model throws.
  std::optional<SpeedSample> run(const SpeedTest& test, const std::function<bool()>& cancelled,
                                 const std::function<void()>& prompt_done = {});
  /// Computes the context before `test` (outside of what is measured); false when cancelled.
  bool prepare(const SpeedTest& test, const std::function<bool()>& cancelled);

 private:
  std::vector<TokenId> tokens(std::size_t sequence, std::size_t from, std::size_t count) const;
  bool read(Sequence& sequence, std::size_t number, std::size_t count, std::size_t chunk, LogitsFor logits,
            const std::function<bool()>& cancelled, TokenId* next);

  Model& model_;
  SequenceOptions options_;
  std::unique_ptr<Sequence> base_;
};

}  // namespace hk::engine
