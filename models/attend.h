// Attention over the paged cache: tasks of (sequence, kv head, query block), partial results per page, merged in page
// order.
//
// Layer: models. The order of additions is a function of positions alone: pages lie at absolute multiples of kKvPage,
// so prompt, single tokens, any chunking and any number of workers give the same bits. With few rows and a long context
// the pages of all tasks are spread over the workers and merged, in the same order, afterwards; in rounds, so that
// partial results take the same memory at any length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/runtime/aligned_buffer.h"
#include "engine/runtime/profile.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/kernels.h"
#include "models/kv_cache.h"
#include "models/rows.h"
#include "models/spec.h"

namespace hk::models {

/// Consecutive rows of a pass that belong to one sequence.
struct Segment {
  KvSequence* sequence = nullptr;
  std::size_t first_row = 0;
  std::size_t rows = 0;
  std::size_t position = 0;  ///< of the first row
};

class Attention {
 public:
  Attention(const ModelSpec& spec, const kernels::KernelTable& kernels, engine::ThreadPool& pool);

  /// q: rows of heads * key_length, already scaled and rotated; out: rows of heads * value_length.
  void run(const AttentionSpec& spec, std::span<const Segment> segments, const Rows& q, const Rows& out);

  /// Partial results of a split context take at most this, unless a few for each worker take more.
  static constexpr std::size_t kPartialBytes = std::size_t{2} << 20;

  /// What `run` has to do at least, for a profile.
  engine::StageWork work(const AttentionSpec& spec, std::span<const Segment> segments) const;

  std::size_t bytes() const;

 private:
  /// Queries that read the same pages of one kv head: `rows` rows times the heads of the group.
  struct Block {
    const Segment* segment;
    std::size_t row;  ///< within the segment
    std::size_t rows;
  };
  /// Arrays for one kernel call; one set a worker.
  struct Scratch {
    std::vector<const float*> q;
    std::vector<std::uint16_t> first, last;
    std::vector<float> page_max, page_sum, max, sum, slope;
    std::vector<std::int32_t> distance;
    std::vector<float*> page_acc;
    engine::AlignedBuffer<float> acc;
    engine::AlignedBuffer<std::byte> kernel;
  };
  struct PageRange {
    std::size_t begin, end;
  };

  void take_partials();
  static PageRange pages_of(const AttentionSpec& spec, const Block& block);
  void attend(const AttentionSpec& spec, const Block& block, std::size_t kv_head, std::size_t page, bool again,
              bool goes_on, const Rows& q, Scratch& scratch, float* acc, float* max, float* sum) const;
  void merge(const AttentionSpec& spec, const Block& block, std::size_t kv_head, std::size_t page, const float* acc,
             const float* page_max, const float* page_sum, float* max, float* sum, const Rows& out) const;
  void start(const AttentionSpec& spec, const Block& block, std::size_t kv_head, float* max, float* sum,
             const Rows& out) const;
  void finish(const AttentionSpec& spec, const Block& block, std::size_t kv_head, const float* max, const float* sum,
              const Rows& out) const;
  bool run_by_pages(const AttentionSpec& spec, const Rows& q, const Rows& out);
  void attend_tasks(const AttentionSpec& spec, std::size_t begin, std::size_t end, std::size_t queries, const Rows& q);
  void merge_tasks(const AttentionSpec& spec, std::size_t begin, std::size_t end, std::size_t queries, const Rows& out);

  const kernels::KernelTable& kernels_;
  engine::ThreadPool& pool_;
  std::vector<Scratch> scratch_;
  std::size_t most_queries_ = 0, most_floats_ = 0;  ///< of a task, and of its partial result
  std::vector<Block> blocks_;
  std::vector<std::size_t>
      first_task_;  ///< of each block, and the number of all: pages of its heads, one head after the other
  engine::AlignedBuffer<float> partials_;
  engine::AlignedBuffer<float> running_;  ///< max and sum of each (block, kv head) between rounds
};

}  // namespace hk::models
