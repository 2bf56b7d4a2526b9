// Requests in, responses out (see scheduler.h).
#include "engine/generate/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/generate/run.h"

namespace hk::engine {
namespace {

/// Seed of answer `sample`; that of the first is the request's own.
std::uint64_t sample_seed(std::uint64_t seed, std::size_t sample) {
  if (sample == 0) return seed;
  RandomStream stream(seed);
  return RandomStream(stream.next() ^ sample).next();
}

PrefixCache::Memory memory_of(const Model& model, const SequenceOptions& options) {
  // What one more page costs where the context is full: there, layers with a window take no more, and only pages of the
  // others are surely shared between forks.
  const std::size_t end = std::max<std::size_t>(options.context_length, kernels::kKvPage);
  const std::uint64_t page =
      model.state_bytes(options, end + kernels::kKvPage) -
      std::min(model.state_bytes(options, end + kernels::kKvPage), model.state_bytes(options, end));
  return {[&model, options](std::size_t positions) { return model.state_bytes(options, positions); }, page};
}

SchedulerOptions checked(SchedulerOptions options) {
  if (options.slots == 0) throw Error("batching needs at least one slot", ErrorKind::kUsage);
  options.step_tokens = std::max(options.step_tokens, options.slots);
  options.prefix_cache_limit = std::min(options.prefix_cache_limit, options.memory_limit);
  return options;
}

double seconds_between(RequestState::Clock::time_point from, RequestState::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Scheduler::Scheduler(Model& model, const tokenizer::Tokenizer& tokenizer, ThreadPool* threads, SchedulerOptions options)
    : model_(model),
      tokenizer_(tokenizer),
      threads_(threads),
      options_(checked(options)),
      cache_(options_.prefix_cache_limit, memory_of(model, options_.sequence)),
      buffers_(threads == nullptr ? 1 : static_cast<std::size_t>(threads->most_threads())) {}

Scheduler::~Scheduler() = default;

void Scheduler::check(const Request& request) const {
  const auto check_ids = [&](std::span<const TokenId> ids) {
    for (const TokenId id : ids)
      if (id < 0 || static_cast<std::size_t>(id) >= model_.info().vocab_size)
        throw Error(
            fmt::format("the token id {} is outside the model's vocabulary of {}", id, model_.info().vocab_size));
  };
  const std::size_t capacity = options_.sequence.context_length;
  for (const ScoredText& text : request.scored) {
    if (text.tokens.empty() || text.from == 0 || text.from > text.tokens.size())
      throw Error("the text to score has no token that another one comes before");
    if (text.tokens.size() - 1 > capacity)
      throw Error(
          fmt::format("the text to score has {} tokens, but the context holds {}", text.tokens.size(), capacity));
    check_ids(text.tokens);
  }
  if (!request.scored.empty()) return;
  if (request.prompt.empty()) throw Error("the prompt is empty: there is no token to go on from");
  if (request.prompt.size() > capacity)
    throw Error(fmt::format(
        "the prompt has {} tokens, but the context holds {}; a shorter prompt or a larger context is needed",
        request.prompt.size(), capacity));
  if (request.samples == 0) throw Error("0 answers were asked for; expected at least 1");
  check_ids(request.prompt);
}

std::uint64_t Scheduler::submit(Request request, std::function<void(Response&&)> done) {
  check(request);
  auto owned = std::make_unique<RequestState>();
  RequestState& state = *owned;
  state.request = std::move(request);
  state.done = std::move(done);
  const Request& asked = state.request;
  const std::size_t before = waiting_.size();
  try {
    if (asked.scored.empty()) {
      state.response.prompt_tokens = asked.prompt.size();
      state.response.answers.resize(asked.samples);
      for (std::size_t i = 0; i < asked.samples; ++i) add_run(state, asked.prompt, i);
    } else {
      state.response.scores.resize(asked.scored.size());
      for (std::size_t i = 0; i < asked.scored.size(); ++i) {
        state.response.prompt_tokens += asked.scored[i].tokens.size();
        add_run(state, asked.scored[i].tokens, i);
      }
    }
  } catch (...) {
    for (; waiting_.size() > before; waiting_.pop_back()) withdraw(*waiting_.back());
    throw;
  }
  state.handle = next_handle_++;
  const std::uint64_t handle = state.handle;
  if (state.open_runs == 0) close(state);
  requests_.emplace(handle, std::move(owned));
  return handle;
}

void Scheduler::add_run(RequestState& state, std::vector<TokenId> tokens, std::size_t index) {
  const Request& request = state.request;
  auto run = std::make_unique<Run>();
  run->owner = &state;
  run->index = index;
  run->tokens = std::move(tokens);
  run->prompt_length = run->score_from = run->tokens.size();
  if (request.scored.empty()) {
    run->generates = !request.max_tokens || *request.max_tokens > 0;
    if (request.prompt_logprobs && request.logprobs && index == 0) run->score_from = 1;
    SamplerSettings settings = request.sampling;
    if (settings.seed) settings.seed = sample_seed(*settings.seed, index);
    run->sampler.emplace(std::move(settings), model_.info().vocab_size, tokenizer_.eog_ids(),
                         [&tokenizer = tokenizer_](TokenId id) { return tokenizer.piece(id); });
    run->sampler->set_history(run->tokens);
    run->text.emplace(tokenizer_, request.stop, request.show_special, request.fresh_text);
    state.response.answers[index].seed = run->sampler->seed();
    state.response.answers[index].reason = FinishReason::kLength;  // of an answer of no tokens
  } else {
    run->score_from = request.scored[index].from;
  }
  if (!run->generates && !run->scoring()) return;  // nothing to compute
  ++state.open_runs;
  run->announced = run->reusable();
  cache_.announce(run->path());
  waiting_.push_back(std::move(run));
}

void Scheduler::cancel(std::uint64_t handle) {
  const auto found = requests_.find(handle);
  if (found == requests_.end() || found->second->over) return;
  RequestState& state = *found->second;
  state.response.cancelled = true;
  const auto end = [&](Run& run) {
    if (run.owner == &state && !run.finished && state.request.scored.empty()) run.finish(FinishReason::kCancelled);
  };
  for (const auto& run : running_) end(*run);
  for (const auto& run : waiting_) end(*run);
  close(state);
}

std::size_t Scheduler::cancel_waiting() {
  std::vector<std::uint64_t> handles;
  for (const auto& [handle, state] : requests_)
    if (!state->started && !state->over) handles.push_back(handle);
  std::sort(handles.begin(), handles.end());
  for (const std::uint64_t handle : handles) cancel(handle);
  return handles.size();
}

void Scheduler::close(RequestState& state) {
  if (state.over) return;
  state.over = true;
  closed_.push_back(&state);
}

void Scheduler::finish(Run& run) {
  run.finished = true;
  RequestState& state = *run.owner;
  if (state.request.scored.empty()) {
    if (run.score_from < run.prompt_length) state.response.prompt_scores = std::move(run.prompt_scores);
  } else {
    TextScore& score = state.response.scores[run.index];
    score.tokens = std::move(run.prompt_scores);
    for (const TokenScore& token : score.tokens) {
      score.logprob += token.token.logprob;
      score.greedy = score.greedy && token.best;
    }
  }
  if (--state.open_runs == 0) close(state);
}

void Scheduler::fail(Run& run, const std::string& sentence) {
  if (run.owner->over) return;
  run.owner->response.error = sentence;
  close(*run.owner);
}

void Scheduler::withdraw(Run& run) {
  if (run.announced == 0) return;
  cache_.withdraw(std::span(run.tokens).first(run.announced));
  run.announced = 0;
}

/// What the run has computed may be the beginning of somebody's prompt.
void Scheduler::release(Run& run) {
  withdraw(run);
  run.pin.reset();
  if (run.sequence == nullptr || !run.owner->response.error.empty()) return;
  const std::size_t length = run.sequence->length();
  cache_.store(std::span(run.tokens).first(length), std::move(run.sequence));
}

void Scheduler::sweep() {
  const auto leaves = [&](const std::unique_ptr<Run>& run) {
    if (!run->finished && !run->owner->over) return false;
    release(*run);
    return true;
  };
  std::erase_if(running_, leaves);
  if (closed_.empty()) return;
  std::erase_if(waiting_, leaves);
  std::vector<std::unique_ptr<RequestState>> answered;
  for (const RequestState* state : std::exchange(closed_, {})) {
    const auto found = requests_.find(state->handle);
    answered.push_back(std::move(found->second));
    requests_.erase(found);
  }
  const auto now = RequestState::Clock::now();
  for (const auto& state : answered) {
    Response& response = state->response;
    ++(response.error.empty() ? statistics_.requests : statistics_.failed);
    const auto begun = state->begun.value_or(now), answering = state->answering.value_or(now);
    response.waited_seconds = seconds_between(state->submitted, begun);
    response.prefill_seconds = seconds_between(begun, answering);
    response.decode_seconds = seconds_between(answering, now);
    // Last, when nothing here changes any more: it may submit and cancel.
    if (state->done) state->done(std::move(response));
  }
}

std::uint64_t Scheduler::memory_used() const {
  std::uint64_t bytes = cache_.bytes() + model_.scratch_bytes();
  for (const auto& run : running_) bytes += run_bytes(*run);
  return bytes;
}

bool Scheduler::step(const std::function<bool()>& cancelled) {
  sweep();
  admit();
  plan();
  if (items_.empty() && running_.empty()) return !requests_.empty();
  pass(cancelled);
  items_.clear();
  sweep();
  keep_to_memory();
  sweep();
  return true;
}

}  // namespace hk::engine
