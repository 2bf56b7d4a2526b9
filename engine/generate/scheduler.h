// Many requests at once over one model: continuous batching with shared prefixes and bounded memory.
//
// Layer: engine/generate. Each step is one forward pass: a row for every running answer, and as much of the waiting
// prompts as fits beside them. Sequences join and leave at any step. What a request answers depends on the request
// alone: not on its company, the order, the slots or the memory (tested; rests on the promise of model.h).
//
// Fair: requests start in the order of submission, and nobody who started waits for who came later. When memory runs
// short, cached prefixes leave first; then the youngest run gives its memory back and is computed again later.
// Not here: threads. One caller drives it step by step; a server puts a lock around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/generate/candidates.h"
#include "engine/generate/model.h"
#include "engine/generate/prefix_cache.h"
#include "engine/generate/request.h"
#include "engine/runtime/thread_pool.h"
#include "tokenizer/tokenizer.h"

namespace hk::engine {

struct Run;
struct RequestState;

struct SchedulerOptions {
  SequenceOptions sequence{};
  std::size_t slots = 16;         ///< sequences that run at the same time
  std::size_t step_tokens = 256;  ///< rows of one forward pass; at least `slots` are taken
  /// Sequences, cached prefixes and the model's buffers together.
  std::uint64_t memory_limit = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t prefix_cache_limit = std::uint64_t{1} << 30;  ///< of that, for prefixes nobody runs with; 0: no sharing
};

struct SchedulerStatistics {
  std::size_t steps = 0;
  std::size_t requests = 0;          ///< answered, with what they asked for
  std::size_t failed = 0;            ///< answered with an error
  std::size_t prefilled_tokens = 0;  ///< prompt tokens computed
  std::size_t decoded_tokens = 0;    ///< generated tokens computed
  std::size_t sampled_tokens = 0;
  std::size_t shared_tokens = 0;      ///< prompt tokens that another request had computed
  std::size_t shared_prefixes = 0;    ///< runs that began with some
  std::size_t recomputed_tokens = 0;  ///< computed again after memory had run short
  std::size_t preemptions = 0;
};

class Scheduler {
 public:
  /// All three must outlive it; `threads` (may be null) samples the answers of a step in parallel.
  Scheduler(Model& model, const tokenizer::Tokenizer& tokenizer, ThreadPool* threads, SchedulerOptions options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Throws hk::Error when the request cannot be answered whatever happens: empty, unknown tokens, too long for the
  /// context, impossible settings. `done` is called from a step(), once.
  std::uint64_t submit(Request request, std::function<void(Response&&)> done);
  /// Ends a request with what it has so far, at the next step. Unknown handles (it was just answered) are ignored.
  void cancel(std::uint64_t handle);
  /// The same for all requests that have not started; returns how many.
  std::size_t cancel_waiting();

  /// One forward pass and all that follows from it. `cancelled` is asked during the pass: true drops the pass, and
  /// everything stays as it was before. False when there is nothing to do.
  bool step(const std::function<bool()>& cancelled = {});

  std::size_t requests() const { return requests_.size(); }  ///< submitted and not answered
  std::size_t running() const { return running_.size(); }    ///< sequences
  std::size_t waiting() const { return waiting_.size(); }    ///< sequences
  const SchedulerStatistics& statistics() const { return statistics_; }
  const SchedulerOptions& options() const { return options_; }
  std::uint64_t memory_used() const;

 private:
  /// What one run computes in a pass.
  struct Item {
    Run* run;
    std::size_t count;
    LogitsFor logits;
    std::size_t mark;  ///< a snapshot is wanted at this length; 0: none
  };
  struct Row;

  // scheduler.cpp: requests in, responses out
  void check(const Request& request) const;
  void add_run(RequestState& state, std::vector<TokenId> tokens, std::size_t index);
  void finish(Run& run);
  void fail(Run& run, const std::string& sentence);
  void close(RequestState& state);
  void sweep();
  void release(Run& run);
  void withdraw(Run& run);

  // scheduler_plan.cpp: who runs, and what the next pass computes
  void admit();
  void keep_to_memory();
  bool make_room(const Run& run);
  void preempt_youngest();
  std::uint64_t run_bytes(const Run& run) const;
  void plan();
  void plan_chunk(Run& run, std::size_t& rows, std::size_t& score_rows);
  bool begin(std::size_t position);
  bool someone_computes_more(std::size_t position, std::size_t found) const;
  void share_with_running(Run& run, std::size_t found);

  // scheduler_pass.cpp: the pass and what follows from its logits
  void pass(const std::function<bool()>& cancelled);
  bool forward(std::span<const Item> items, const std::function<bool()>& cancelled);
  void recover(const std::string& sentence, bool memory, const std::function<bool()>& cancelled);
  void consume(std::span<const Item> items, std::span<const float> logits);
  void count(const Item& item);
  void evaluate(Row& row, Candidates& buffers) const;
  void apply(Row& row);

  Model& model_;
  const tokenizer::Tokenizer& tokenizer_;
  ThreadPool* threads_;
  SchedulerOptions options_;
  PrefixCache cache_;
  std::deque<std::unique_ptr<Run>> waiting_;
  std::vector<std::unique_ptr<Run>> running_;  // oldest first
  std::unordered_map<std::uint64_t, std::unique_ptr<RequestState>> requests_;
  std::vector<RequestState*> closed_;  // to be answered
  std::uint64_t next_handle_ = 1;
  std::vector<Item> items_;
  std::vector<Candidates> buffers_;  // of sampling, one a thread
  bool short_of_memory_ = false;     // the last pass failed for want of it: nobody joins
  SchedulerStatistics statistics_;
};

}  // namespace hk::engine
