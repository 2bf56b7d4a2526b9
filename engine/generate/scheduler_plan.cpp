// Who runs, and what the next pass computes (see scheduler.h).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/generate/run.h"
#include "engine/generate/scheduler.h"

namespace hk::engine {
namespace {

// Logits of all rows of a scored text are held at once; this bounds them (a row of a large vocabulary is 1 MB).
constexpr std::size_t kScoreBytes = std::size_t{64} << 20;
// Waiting for, or copying, a beginning that somebody else computes must save this many tokens.
constexpr std::size_t kWorthSharing = 8;

std::size_t common_length(std::span<const TokenId> a, std::span<const TokenId> b) {
  const std::size_t length = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin()).first - a.begin());
}

}  // namespace

/// Memory the run will hold when all its tokens are computed.
std::uint64_t Scheduler::run_bytes(const Run& run) const {
  const std::size_t positions = std::min(run.tokens.size(), options_.sequence.context_length);
  return cache_.own_bytes(positions, run.shared);
}

void Scheduler::admit() {
  while (running_.size() < options_.slots && !waiting_.empty()) {
    Run& run = *waiting_.front();
    const bool fits = !(short_of_memory_ && !running_.empty()) && make_room(run);
    if (!fits && !running_.empty()) return;
    run.owner->started = true;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    if (fits) continue;
    fail(run, fmt::format("its {} tokens need {} bytes of memory, more than the limit leaves", run.tokens.size(),
                          run_bytes(run)));
    sweep();
  }
}

bool Scheduler::make_room(const Run& run) {
  if (options_.memory_limit == std::numeric_limits<std::uint64_t>::max()) return true;
  std::uint64_t bytes = run_bytes(run);
  // A newcomer must not be the reason that somebody runs out at the next page.
  if (!running_.empty()) {
    const std::size_t next = std::min(run.tokens.size() + kernels::kKvPage, options_.sequence.context_length);
    if (run.generates) bytes = std::max(bytes, cache_.own_bytes(next, run.shared));
  }
  // Not even alone: then nothing has to leave for it.
  if (model_.scratch_bytes() > options_.memory_limit || bytes > options_.memory_limit - model_.scratch_bytes())
    return false;
  while (memory_used() > options_.memory_limit || bytes > options_.memory_limit - memory_used())
    if (!cache_.evict()) return false;
  return true;
}

void Scheduler::keep_to_memory() {
  if (options_.memory_limit == std::numeric_limits<std::uint64_t>::max()) return;
  while (memory_used() > options_.memory_limit) {
    if (cache_.evict()) continue;
    if (running_.empty()) return;
    if (running_.size() > 1) {
      preempt_youngest();
      continue;
    }
    Run& run = *running_.front();
    fail(run, fmt::format("the memory limit is reached at {} tokens: {} bytes are needed", run.tokens.size(),
                          memory_used()));
    return;
  }
}

/// Takes the memory of the run that came last; it computes the same again when there is room.
void Scheduler::preempt_youngest() {
  Run& run = *running_.back();
  run.sequence.reset();
  run.pin.reset();
  run.shared = 0;
  ++statistics_.preemptions;
  waiting_.push_front(std::move(running_.back()));
  running_.pop_back();
}

void Scheduler::plan() {
  items_.clear();
  std::size_t rows = 0, score_rows = 0;
  const auto answers = [](const Run& run) { return run.sequence != nullptr && run.computed() >= run.prompt_length; };
  for (const auto& run : running_) {
    if (!answers(*run) || run->pending() != 1) continue;
    items_.push_back({run.get(), 1, LogitsFor::kLast, 0});
    ++rows;
  }
  for (std::size_t i = 0; i < running_.size() && rows < options_.step_tokens; ++i) {
    Run& run = *running_[i];
    if (run.owner->over || (answers(run) && run.pending() == 1)) continue;
    if (run.sequence != nullptr || begin(i)) plan_chunk(run, rows, score_rows);
  }
}

void Scheduler::plan_chunk(Run& run, std::size_t& rows, std::size_t& score_rows) {
  const std::size_t computed = run.computed();
  Item item{&run, std::min(run.pending(), options_.step_tokens - rows), LogitsFor::kNone, 0};
  if (run.scoring() && computed + 1 >= run.next_score()) {
    const std::size_t most = std::max<std::size_t>(1, kScoreBytes / sizeof(float) / model_.info().vocab_size);
    if (score_rows >= most) return;
    item.count = std::min(item.count, most - score_rows);
    item.logits = LogitsFor::kAll;
    score_rows += item.count;
  } else if (run.scoring()) {
    item.count = std::min(item.count, run.next_score() - 1 - computed);
  }
  if (run.announced > computed) {
    item.mark = cache_.next_mark(std::span(run.tokens).first(run.announced), computed);
    if (item.mark != 0 && item.mark <= computed + item.count) {
      item.count = item.mark - computed;
    } else {
      item.mark = 0;
    }
  }
  if (item.logits == LogitsFor::kNone && run.generates && !run.scoring() && item.count == run.pending())
    item.logits = LogitsFor::kLast;
  rows += item.count;
  items_.push_back(item);
}

/// Gives the run a sequence, with what others have computed of its beginning. False when it is better to wait for them.
bool Scheduler::begin(std::size_t position) {
  Run& run = *running_[position];
  if (cache_.enabled()) {
    const std::size_t found = cache_.find(run.path());
    if (someone_computes_more(position, found)) return false;
    share_with_running(run, found);
    if (run.sequence == nullptr) {
      auto match = cache_.take(run.path());
      run.sequence = std::move(match.sequence);
      run.pin = std::move(match.pin);
      run.shared = run.computed();
    }
  }
  if (run.sequence == nullptr) run.sequence = model_.new_sequence(options_.sequence);
  if (run.reached == 0 && run.computed() > 0) {
    ++statistics_.shared_prefixes;
    statistics_.shared_tokens += run.computed();
    if (run.owner->request.scored.empty() ? run.index == 0 : true) run.owner->response.cached_tokens += run.computed();
  }
  run.reached = std::max(run.reached, run.computed());
  if (!run.owner->begun) run.owner->begun = RequestState::Clock::now();
  return true;
}

/// Only older runs are waited for, and the oldest waits for nobody.
bool Scheduler::someone_computes_more(std::size_t position, std::size_t found) const {
  const auto path = running_[position]->path();
  for (std::size_t i = 0; i < position; ++i) {
    const Run& other = *running_[i];
    if (other.owner->over) continue;
    const std::size_t common = common_length(std::span(other.tokens).first(other.wanted()), path);
    if (common >= found + kWorthSharing && other.computed() < common) return true;
  }
  return false;
}

void Scheduler::share_with_running(Run& run, std::size_t found) {
  const Run* best = nullptr;
  std::size_t best_length = found + kWorthSharing - 1;
  for (const auto& other : running_) {
    const std::size_t common = common_length(std::span(other->tokens).first(other->computed()), run.path());
    if (common <= best_length) continue;
    best_length = common;
    best = other.get();
  }
  if (best == nullptr) return;
  auto fork = best->sequence->fork();
  const std::size_t kept = fork->truncate(best_length);
  if (kept <= found) return;
  // Through the cache if it has room: so the shared pages are accounted for after the other one has left.
  if (cache_.store(run.path().first(kept), fork->fork())) return;
  run.sequence = std::move(fork);
}

}  // namespace hk::engine
