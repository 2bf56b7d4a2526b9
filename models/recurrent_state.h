// State of a sequence's recurrent layers: one block of floats for all of them, with earlier ones kept to go back to.
//
// Layer: models. A block is written by one sequence at a time: forks and kept states share blocks, and whoever goes on
// from a shared block writes to another. So the state before a call, or at a kept position, costs no copying of its
// own. Kept are the starts of the last few prompts and positions at page boundaries, ever fewer the further back they
// lie: going back ends at the nearest one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/runtime/aligned_buffer.h"

namespace hk::models {

class RecurrentState {
 public:
  explicit RecurrentState(std::size_t floats);
  RecurrentState(const RecurrentState& other);  ///< shares what is there; not during a call
  RecurrentState& operator=(const RecurrentState&) = delete;

  /// The state `position` positions in stays until end_call, so that truncate can come back to it.
  void begin_call(std::size_t position);
  /// `tokens`: how many the call appended.
  void end_call(std::size_t tokens);

  /// Chooses where the next rows read and write; the two may be the same.
  void prepare();
  const float* read() const { return read_; }
  float* write() const { return next_->data(); }
  /// What was written is the state of `position`.
  void commit(std::size_t position);

  /// The furthest position up to `length` that there is a state for; `now` is the present one.
  std::size_t reachable(std::size_t length, std::size_t now) const;
  /// Goes back to a reachable position.
  void go_back(std::size_t position, std::size_t now);

  /// The present state, of at least one position.
  std::span<const float> present() const { return {current_->data(), floats_}; }
  std::size_t present_bytes() const { return floats_ * sizeof(float); }
  /// Makes present_bytes() bytes the present state; no earlier one is known.
  void assign(std::span<const std::byte> bytes);

  std::uint64_t bytes() const;
  /// Most bytes a sequence of `positions` holds.
  static std::uint64_t most_bytes(std::size_t floats, std::size_t positions);

 private:
  using Block = engine::AlignedBuffer<float>;
  struct Kept {
    std::size_t position = 0;
    std::shared_ptr<Block> block;
    bool prompt = false;
  };
  std::shared_ptr<Block> take_block();
  void release(std::shared_ptr<Block>& block);
  void keep_prompt();
  void thin_out(std::size_t newest);

  std::size_t floats_;
  std::shared_ptr<Block> current_;  // null: the state of no position, zeros
  std::shared_ptr<Block> next_;     // of the running chunk
  std::shared_ptr<Block> spare_;    // for the next chunk, so that single tokens allocate nothing
  const float* read_ = nullptr;
  std::vector<Kept> kept_;  // by position
  Kept call_start_;
  bool in_call_ = false;
};

}  // namespace hk::models
