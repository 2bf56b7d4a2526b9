// Keys and values of one conversation: pages of kKvPage positions per layer, taken as the context fills, shared between
// forks. Beside them the state of recurrent layers (models/recurrent_state.h).
//
// Layer: models. A page of a slot holds, head after head, a page of keys and a page of values as kernels/kv_type.h lays
// them out. Pages are reference-counted; one that is shared is copied before it is written. Slots with a
// window drop pages that no later position can see, except for one page that allows going back a little. The pages of
// all slots with the same window are taken and given back at the same time, so they lie in one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/generate/keepable_state.h"
#include "engine/generate/model.h"
#include "engine/runtime/zeroed_memory.h"
#include "models/recurrent_state.h"
#include "models/spec.h"

namespace hk::models {

/// A slot's page, in memory that it shares with pages of other slots. Zeroed; the system hands the zeros out lazily, so
/// that an unfilled page costs little.
class KvPage {
 public:
  KvPage(std::shared_ptr<engine::ZeroedMemory> memory, std::size_t offset)
      : data_(memory->data() + offset), memory_(std::move(memory)) {}
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  std::shared_ptr<engine::ZeroedMemory> memory_;
};

std::size_t kv_page_bytes(const KvSlot& slot, kernels::KvType type);

class KvSequence final : public engine::Sequence, public engine::KeepableState {
 public:
  /// `owner` tells sequences of different models apart.
  KvSequence(const void* owner, const ModelSpec& spec, const engine::SequenceOptions& options);

  std::size_t length() const override { return length_; }
  std::size_t capacity() const override { return options_.context_length; }
  std::uint64_t state_bytes() const override;
  std::size_t truncate(std::size_t length) override;
  std::unique_ptr<engine::Sequence> fork() const override;
  std::vector<engine::StatePart> state_parts() const override;
  bool load_state(std::size_t length, std::span<const engine::StatePart> parts) override;

  const void* owner() const { return owner_; }
  kernels::KvType kv_type() const { return options_.kv; }

  /// A call that may be taken back begins and ends; `tokens` is how many it appended.
  void begin_call();
  void end_call(std::size_t tokens);
  /// Makes room to write positions [from, from + count): pages exist and are this sequence's alone.
  void prepare(std::size_t from, std::size_t count);
  /// The sequence now holds `length` positions.
  void commit(std::size_t length);
  /// Gives back pages that neither a continuation at `next` nor a return to `keep` needs.
  void release_unseen(std::size_t next, std::size_t keep);

  const std::byte* keys(std::size_t slot, std::size_t head, std::size_t page) const;
  const std::byte* values(std::size_t slot, std::size_t head, std::size_t page) const;
  std::byte* keys(std::size_t slot, std::size_t head, std::size_t page);
  std::byte* values(std::size_t slot, std::size_t head, std::size_t page);

  /// State of recurrent layers before and after the rows of the running chunk; they may be the same.
  const float* state_before(std::size_t offset) const { return recurrent_.read() + offset; }
  float* state_after(std::size_t offset) const { return recurrent_.write() + offset; }

 private:
  struct Pages {
    KvSlot shape;
    std::size_t key_bytes = 0;   ///< of one head's keys in a page; its values follow
    std::size_t head_bytes = 0;  ///< of one head's keys and values
    std::size_t bytes = 0;       ///< of one page
    std::size_t first_kept = 0;  ///< pages before it were given back
    std::vector<std::shared_ptr<KvPage>> pages;
  };

  void own_page(std::size_t index);

  const void* owner_;
  engine::SequenceOptions options_;
  std::size_t length_ = 0;
  std::vector<Pages> slots_;
  bool has_state_;
  RecurrentState recurrent_;
};

}  // namespace hk::models
