// The forward pass of a step, and what follows from its logits (see scheduler.h).
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "base/error.h"
#include "engine/generate/run.h"
#include "engine/generate/scheduler.h"

namespace hk::engine {

/// One row of logits and what it is for.
struct Scheduler::Row {
  Run* run;
  std::span<const float> logits;
  bool sample;  ///< else `token` is scored
  TokenId token = 0;
  TokenScore score;
  std::string error;
};

void Scheduler::pass(const std::function<bool()>& cancelled) {
  try {
    forward(items_, cancelled);
  } catch (const Error& error) {
    recover(error.what(), error.kind() == ErrorKind::kResource, cancelled);
  } catch (const std::bad_alloc&) {
    recover("out of memory", true, cancelled);
  }
}

/// False when it was cancelled.
bool Scheduler::forward(std::span<const Item> items, const std::function<bool()>& cancelled) {
  std::vector<BatchItem> batch;
  for (const Item& item : items)
    batch.push_back(
        {item.run->sequence.get(), std::span(item.run->tokens).subspan(item.run->computed(), item.count), item.logits});
  const std::size_t before = items.front().run->computed();
  const auto logits = model_.forward(batch, {cancelled, {}});
  if (items.front().run->computed() == before) return false;
  ++statistics_.steps;
  short_of_memory_ = false;
  consume(items, logits);
  return true;
}

/// The pass failed and changed nothing. Memory: somebody has to give some back, and the next step tries again. Else:
/// one by one, so that the one to blame fails alone.
void Scheduler::recover(const std::string& sentence, bool memory, const std::function<bool()>& cancelled) {
  if (memory) {
    short_of_memory_ = true;
    bool freed = false;
    while (cache_.evict()) freed = true;
    if (freed) return;
    if (running_.size() > 1) return preempt_youngest();
  }
  if (items_.size() == 1) return fail(*items_.front().run, sentence);
  for (const Item& item : items_) {
    try {
      if (!forward({&item, 1}, cancelled)) return;
    } catch (const Error& error) {
      fail(*item.run, error.what());
    } catch (const std::bad_alloc&) {
      fail(*item.run, "out of memory");
    }
  }
}

void Scheduler::consume(std::span<const Item> items, std::span<const float> logits) {
  const std::size_t width = model_.info().vocab_size;
  std::vector<Row> rows;
  std::size_t offset = 0;
  for (const Item& item : items) {
    Run& run = *item.run;
    count(item);
    const std::size_t end = run.computed();
    if (item.mark != 0 && end == item.mark) cache_.store(std::span(run.tokens).first(end), run.sequence->fork());
    if (run.announced != 0 && end >= run.announced) withdraw(run);
    if (item.logits == LogitsFor::kNone) continue;
    for (std::size_t i = item.logits == LogitsFor::kAll ? end - item.count : end - 1; i < end; ++i) {
      const bool sample = run.generates && i + 1 == run.tokens.size();
      rows.push_back({&run, logits.subspan(offset, width), sample, sample ? 0 : run.tokens[i + 1], {}, {}});
      offset += width;
    }
  }
  if (threads_ != nullptr && rows.size() > 1) {
    threads_->run(rows.size(),
                  [&](std::size_t i, int worker) { evaluate(rows[i], buffers_[static_cast<std::size_t>(worker)]); });
  } else {
    for (Row& row : rows) evaluate(row, buffers_.front());
  }
  for (Row& row : rows) apply(row);
}

void Scheduler::count(const Item& item) {
  Run& run = *item.run;
  const std::size_t end = run.computed(), start = end - item.count;
  const std::size_t fresh = std::max(start, std::min(run.reached, end));
  statistics_.recomputed_tokens += fresh - start;
  const std::size_t prompt_end = std::clamp(run.prompt_length, fresh, end);
  statistics_.prefilled_tokens += prompt_end - fresh;
  statistics_.decoded_tokens += end - prompt_end;
  run.reached = std::max(run.reached, end);
}

/// On any thread; touches nothing but its row, the thread's buffers and, for the row that samples, the run's sampler.
void Scheduler::evaluate(Row& row, Candidates& buffers) const {
  const auto& alternatives = row.run->owner->request.logprobs;
  try {
    if (row.sample) {
      row.token = row.run->sampler->sample(row.logits, buffers);
      row.run->sampler->accept(row.token);
    }
    if (!row.sample || alternatives) row.score = score_token(row.logits, row.token, alternatives.value_or(0));
  } catch (const Error& error) {
    row.error = error.what();
  } catch (const std::bad_alloc&) {
    row.error = "out of memory";
  }
}

void Scheduler::apply(Row& row) {
  Run& run = *row.run;
  RequestState& state = *run.owner;
  if (state.over) return;  // another sample of the request failed, or its listener cancelled it
  if (!row.error.empty()) return fail(run, row.error);
  if (!row.sample) {
    run.prompt_scores.push_back(std::move(row.score));
    if (!run.generates && !run.scoring()) finish(run);
    return;
  }
  if (!state.answering) state.answering = RequestState::Clock::now();
  ++statistics_.sampled_tokens;
  const std::size_t before = run.answer().tokens.size();
  const bool complete = run.accept(row.token, options_.sequence.context_length, tokenizer_);
  if (state.request.logprobs && run.answer().tokens.size() > before)
    run.answer().scores.push_back(std::move(row.score));
  if (complete) finish(run);
}

}  // namespace hk::engine
