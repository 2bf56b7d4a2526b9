// Attention over the paged cache (see attend.h).
#include "models/attend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace hk::models {

using kernels::kKvPage;

namespace {

// Queries that share one reading of a page: enough to hide the load of keys, few enough for their sums to stay in L1.
constexpr std::size_t kQueriesABlock = 32;
// The largest tile of queries that attention kernels take on any level.
constexpr std::size_t kQueriesATile = 8;
// A context is split over the workers when there are fewer tasks than this for each of them: eight heads on two threads
// would be even, but a core that is taken away would hold up an eighth of a long context.
constexpr std::size_t kTasksAThread = 16;
// Pages of a split context that a worker takes together, at most: each is asked for while the one before is worked on.
constexpr std::size_t kPagesTogether = 8;
// Partial results for each worker in a round, at least: rounds end with a wait for the slowest.
constexpr std::size_t kPagesAThread = 8;

std::size_t first_visible(const AttentionSpec& spec, std::size_t position) {
  std::size_t first = 0;
  if (spec.window != 0 && position >= spec.window) first = position + 1 - spec.window;
  if (spec.block != 0) first = std::max(first, position / spec.block * spec.block);
  return first;
}

std::size_t group_of(const AttentionSpec& spec) { return spec.heads / spec.kv_heads; }

std::size_t head_of(const AttentionSpec& spec, std::size_t kv_head, std::size_t member) {
  return spec.strided_heads ? member * spec.kv_heads + kv_head : kv_head * group_of(spec) + member;
}

}  // namespace

Attention::Attention(const ModelSpec& spec, const kernels::KernelTable& kernels, engine::ThreadPool& pool)
    : kernels_(kernels), pool_(pool) {
  std::size_t queries = kQueriesABlock;
  std::size_t value_length = 0, key_length = 0;
  for (const LayerSpec& layer : spec.layers) {
    if (layer.attention.heads == 0) continue;
    queries = std::max(queries, group_of(layer.attention));
    key_length = std::max(key_length, layer.attention.key_length);
    value_length = std::max(value_length, layer.attention.value_length);
  }
  most_queries_ = queries;
  most_floats_ = queries * (value_length + 2);
  scratch_.resize(static_cast<std::size_t>(pool.most_threads()));
  for (Scratch& s : scratch_) {
    s.q.resize(queries);
    s.first.resize(queries);
    s.last.resize(queries);
    for (std::vector<float>* values : {&s.page_max, &s.page_sum, &s.max, &s.sum, &s.slope}) values->resize(queries);
    s.distance.resize(queries);
    s.page_acc.resize(queries);
    s.acc = engine::AlignedBuffer<float>(queries * value_length, "attention sums");
    s.kernel = engine::AlignedBuffer<std::byte>(  // the type that needs most
        kernels::attend_scratch_bytes(kernels::KvType::kQ8_0, key_length), "attention scores");
  }
}

engine::StageWork Attention::work(const AttentionSpec& spec, std::span<const Segment> segments) const {
  engine::StageWork work;
  for (const Segment& segment : segments) {
    if (segment.rows == 0) continue;
    const std::uint64_t width = spec.key_length + spec.value_length;
    const kernels::KvType type = segment.sequence->kv_type();
    for (std::size_t r = 0; r < segment.rows; ++r) {
      const std::size_t position = segment.position + r;
      work.float_macs += (position + 1 - first_visible(spec, position)) * spec.heads * width;
    }
    const std::uint64_t seen = segment.position + segment.rows - first_visible(spec, segment.position);
    const std::uint64_t page =
        kernels::key_page_bytes(type, spec.key_length) + kernels::value_page_bytes(type, spec.value_length);
    work.bytes += seen * spec.kv_heads * page / kKvPage;
  }
  return work;
}

std::size_t Attention::bytes() const {
  std::size_t bytes = partials_.bytes() + running_.bytes();
  for (const Scratch& s : scratch_) bytes += s.acc.bytes() + s.kernel.bytes();
  return bytes;
}

Attention::PageRange Attention::pages_of(const AttentionSpec& spec, const Block& block) {
  const std::size_t position = block.segment->position + block.row;
  return {first_visible(spec, position) / kKvPage, (position + block.rows - 1) / kKvPage + 1};
}

/// One kernel call: all queries of the block against one page. acc, max and sum have a place for each query. `again`:
/// the last call with this scratch memory was the same but for the page; `goes_on`: so is the next, with the next page.
void Attention::attend(const AttentionSpec& spec, const Block& block, std::size_t kv_head, std::size_t page, bool again,
                       bool goes_on, const Rows& q, Scratch& s, float* acc, float* max, float* sum) const {
  const std::size_t group = group_of(spec);
  const std::size_t base = page * kKvPage;
  for (std::size_t r = 0; r < block.rows; ++r) {
    const std::size_t position = block.segment->position + block.row + r;
    const std::size_t from = std::clamp(first_visible(spec, position), base, base + kKvPage) - base;
    const std::size_t to = std::clamp(position + 1, base, base + kKvPage) - base;
    const float* row = q[block.segment->first_row + block.row + r];
    for (std::size_t g = 0; g < group; ++g) {
      const std::size_t i = r * group + g;
      const std::size_t head = head_of(spec, kv_head, g);
      s.q[i] = row + head * spec.key_length;
      s.first[i] = static_cast<std::uint16_t>(from);
      s.last[i] = static_cast<std::uint16_t>(to);
      s.page_acc[i] = acc + i * spec.value_length;
      if (spec.slopes == nullptr) continue;
      s.slope[i] = spec.slopes[head];
      s.distance[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(base) - static_cast<std::int64_t>(position));
    }
  }
  kernels::AttendPageArgs args;
  const KvSequence& sequence = *block.segment->sequence;
  args.k = sequence.keys(spec.kv_slot, kv_head, page);
  args.v = sequence.values(spec.kv_slot, kv_head, page);
  args.next = goes_on ? sequence.keys(spec.kv_slot, kv_head, page + 1) : nullptr;
  args.again = again;
  args.type = sequence.kv_type();
  args.head_size = spec.key_length;
  args.value_size = spec.value_length;
  args.n = block.rows * group;
  args.q = s.q.data();
  args.first = s.first.data();
  args.last = s.last.data();
  args.softcap = spec.softcap;
  args.slope = spec.slopes == nullptr ? nullptr : s.slope.data();
  args.distance = spec.slopes == nullptr ? nullptr : s.distance.data();
  args.max = max;
  args.sum = sum;
  args.acc = s.page_acc.data();
  args.scratch = s.kernel.data();
  kernels_.attend_page(args);
}

/// Folds a page into the running result, whose sums lie in `out`. Pages in which a query sees nothing take no part.
void Attention::merge(const AttentionSpec& spec, const Block& block, std::size_t kv_head, std::size_t page,
                      const float* acc, const float* page_max, const float* page_sum, float* max, float* sum,
                      const Rows& out) const {
  const std::size_t group = group_of(spec);
  for (std::size_t r = 0; r < block.rows; ++r) {
    const std::size_t position = block.segment->position + block.row + r;
    if (position < page * kKvPage || first_visible(spec, position) >= (page + 1) * kKvPage) continue;
    float* row = out[block.segment->first_row + block.row + r];
    for (std::size_t g = 0; g < group; ++g) {
      const std::size_t i = r * group + g;
      kernels_.attend_merge(&max[i], &sum[i], row + head_of(spec, kv_head, g) * spec.value_length, page_max[i],
                            page_sum[i], acc + i * spec.value_length, spec.value_length);
    }
  }
}

void Attention::start(const AttentionSpec& spec, const Block& block, std::size_t kv_head, float* max, float* sum,
                      const Rows& out) const {
  const std::size_t group = group_of(spec);
  std::fill_n(max, block.rows * group, -std::numeric_limits<float>::infinity());
  std::fill_n(sum, block.rows * group, 0.0F);
  for (std::size_t r = 0; r < block.rows; ++r) {
    float* row = out[block.segment->first_row + block.row + r];
    for (std::size_t g = 0; g < group; ++g)
      std::fill_n(row + head_of(spec, kv_head, g) * spec.value_length, spec.value_length, 0.0F);
  }
}

/// Divides by the sum of the softmax, which a sink joins last.
void Attention::finish(const AttentionSpec& spec, const Block& block, std::size_t kv_head, const float* max,
                       const float* sum, const Rows& out) const {
  const std::size_t group = group_of(spec);
  for (std::size_t r = 0; r < block.rows; ++r) {
    float* row = out[block.segment->first_row + block.row + r];
    for (std::size_t g = 0; g < group; ++g) {
      const std::size_t i = r * group + g;
      const std::size_t head = head_of(spec, kv_head, g);
      float factor = 1.0F / sum[i];
      if (spec.sinks != nullptr) {
        const float top = std::max(max[i], spec.sinks[head]);
        const float shrink = std::exp(max[i] - top);
        factor = shrink / (sum[i] * shrink + std::exp(spec.sinks[head] - top));
      }
      kernels_.scale(row + head * spec.value_length, factor, spec.value_length);
    }
  }
}

void Attention::run(const AttentionSpec& spec, std::span<const Segment> segments, const Rows& q, const Rows& out) {
  // queries meet keys in eights: whole eights of them, where that is possible
  const std::size_t group = group_of(spec), unit = kQueriesATile / std::gcd(kQueriesATile, group);
  const std::size_t most = std::max<std::size_t>(1, kQueriesABlock / group);
  const std::size_t rows_a_block = most < unit ? most : most / unit * unit;
  blocks_.clear();
  for (const Segment& segment : segments) {
    for (std::size_t row = 0; row < segment.rows; row += rows_a_block)
      blocks_.push_back({&segment, row, std::min(rows_a_block, segment.rows - row)});
  }
  if (run_by_pages(spec, q, out)) return;
  // Later blocks of a prompt see more keys: they are handed out first, so that no worker ends on the longest.
  pool_.run(blocks_.size() * spec.kv_heads, [&](std::size_t task, int worker) {
    const Block& block = blocks_[blocks_.size() - 1 - task / spec.kv_heads];
    const std::size_t kv_head = task % spec.kv_heads;
    Scratch& s = scratch_[static_cast<std::size_t>(worker)];
    start(spec, block, kv_head, s.max.data(), s.sum.data(), out);
    const PageRange pages = pages_of(spec, block);
    for (std::size_t page = pages.begin; page < pages.end; ++page) {
      attend(spec, block, kv_head, page, page != pages.begin, page + 1 != pages.end, q, s, s.acc.data(),
             s.page_max.data(), s.page_sum.data());
      merge(spec, block, kv_head, page, s.acc.data(), s.page_max.data(), s.page_sum.data(), s.max.data(), s.sum.data(),
            out);
    }
    finish(spec, block, kv_head, s.max.data(), s.sum.data(), out);
  });
}

/// Once for a model: what a split needs at most does not depend on the context.
void Attention::take_partials() {
  if (!partials_.empty()) return;
  const std::size_t threads = scratch_.size();
  partials_ = engine::AlignedBuffer<float>(
      std::max(threads * kPagesAThread * most_floats_, kPartialBytes / sizeof(float)), "attention partial sums");
  running_ = engine::AlignedBuffer<float>(2 * most_queries_ * threads * kTasksAThread, "attention sums between rounds");
}

/// With few tasks for each worker, spreads (block, head, page) over them. False: not worth it.
bool Attention::run_by_pages(const AttentionSpec& spec, const Rows& q, const Rows& out) {
  const std::size_t threads = static_cast<std::size_t>(pool_.threads());
  const std::size_t heads = spec.kv_heads;
  if (threads == 1 || blocks_.size() * heads >= threads * kTasksAThread) return false;
  first_task_.clear();
  first_task_.push_back(0);
  std::size_t queries = 0;
  for (const Block& block : blocks_) {
    const PageRange pages = pages_of(spec, block);
    first_task_.push_back(first_task_.back() + (pages.end - pages.begin) * heads);
    queries = std::max(queries, block.rows * group_of(spec));
  }
  const std::size_t tasks = first_task_.back();
  if (tasks <= blocks_.size() * heads) return false;
  const std::size_t floats_a_task = queries * (spec.value_length + 2);
  take_partials();
  const std::size_t round = partials_.size() / floats_a_task;
  for (std::size_t begin = 0; begin < tasks; begin += round) {
    const std::size_t end = std::min(tasks, begin + round);
    attend_tasks(spec, begin, end, queries, q);
    merge_tasks(spec, begin, end, queries, out);
  }
  return true;
}

/// Partial results of the tasks from `begin` on: each has max, sum and acc of `queries` queries.
void Attention::attend_tasks(const AttentionSpec& spec, std::size_t begin, std::size_t end, std::size_t queries,
                             const Rows& q) {
  const std::size_t threads = static_cast<std::size_t>(pool_.threads());
  const std::size_t together = std::clamp((end - begin) / (threads * kTasksAThread), std::size_t{1}, kPagesTogether);
  pool_.run((end - begin + together - 1) / together, [&](std::size_t chunk, int worker) {
    const std::size_t first = begin + chunk * together;
    const std::size_t behind = std::min(end, first + together);
    Scratch& s = scratch_[static_cast<std::size_t>(worker)];
    for (std::size_t task = first; task < behind; ++task) {
      const auto after = std::upper_bound(first_task_.begin(), first_task_.end(), task);
      const std::size_t b = static_cast<std::size_t>(after - first_task_.begin()) - 1;
      const PageRange pages = pages_of(spec, blocks_[b]);
      const std::size_t in_block = task - first_task_[b];
      const std::size_t kv_head = in_block / (pages.end - pages.begin);
      const std::size_t page = pages.begin + in_block % (pages.end - pages.begin);
      float* partial = partials_.data() + (task - begin) * queries * (spec.value_length + 2);
      attend(spec, blocks_[b], kv_head, page, task != first && page != pages.begin,
             task + 1 != behind && page + 1 != pages.end, q, s, partial + 2 * queries, partial, partial + queries);
    }
  });
}

/// Folds them into the running results in page order.
void Attention::merge_tasks(const AttentionSpec& spec, std::size_t begin, std::size_t end, std::size_t queries,
                            const Rows& out) {
  pool_.run(blocks_.size() * spec.kv_heads, [&](std::size_t i, int) {
    const std::size_t b = i / spec.kv_heads;
    const std::size_t kv_head = i % spec.kv_heads;
    const PageRange pages = pages_of(spec, blocks_[b]);
    const std::size_t first = first_task_[b] + kv_head * (pages.end - pages.begin);
    const std::size_t last = first + (pages.end - pages.begin);
    float* max = running_.data() + i * 2 * queries;
    float* sum = max + queries;
    if (begin <= first && first < end) start(spec, blocks_[b], kv_head, max, sum, out);
    for (std::size_t task = std::max(begin, first); task < std::min(end, last); ++task) {
      const float* partial = partials_.data() + (task - begin) * queries * (spec.value_length + 2);
      merge(spec, blocks_[b], kv_head, pages.begin + task - first, partial + 2 * queries, partial, partial + queries,
            max, sum, out);
    }
    if (begin < last && last <= end) finish(spec, blocks_[b], kv_head, max, sum, out);
  });
}

}  // namespace hk::models
