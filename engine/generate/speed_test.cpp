// Timed prompts and greedy generation (see speed_test.h).
#include "engine/generate/speed_test.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace hk::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// The first of the largest. In lanes: a single chain of comparisons over a large vocabulary would show in the result.
TokenId largest(std::span<const float> logits) {
  constexpr std::size_t kLanes = 32;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, logits[0]);
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = lanes[lane] < logits[i + lane] ? logits[i + lane] : lanes[lane];
  }
  float best = *std::max_element(lanes, lanes + kLanes);
  for (; i < logits.size(); ++i) best = std::max(best, logits[i]);
  const auto found = std::find(logits.begin(), logits.end(), best);
  return found == logits.end() ? 0 : static_cast<TokenId>(found - logits.begin());
}

/// Of the ids' bytes (FNV-1a, 64 bits).
std::uint64_t add_to_checksum(std::uint64_t sum, TokenId id) {
  for (int shift = 0; shift < 32; shift += 8)
    sum = (sum ^ (static_cast<std::uint32_t>(id) >> shift & 0xFFU)) * 0x100000001B3U;
  return sum;
}

}  // namespace

SpeedBed::SpeedBed(Model& model, const SequenceOptions& options) : model_(model), options_(options) {}

/// Ids that look random and depend on the place alone (multiplicative mixing).
std::vector<TokenId> SpeedBed::tokens(std::size_t sequence, std::size_t from, std::size_t count) const {
  std::vector<TokenId> ids(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t x = (from + i + 1) * 0x9E3779B97F4A7C15U + sequence * 0xD1342543DE82EF95U;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9U;
    ids[i] = static_cast<TokenId>((x >> 33) % model_.info().vocab_size);
  }
  return ids;
}

/// Appends `count` made-up tokens; with `next`, the most likely one after them.
bool SpeedBed::read(Sequence& sequence, std::size_t number, std::size_t count, std::size_t chunk, LogitsFor logits,
                    const std::function<bool()>& cancelled, TokenId* next) {
  const auto ids = tokens(number, sequence.length(), count);
  chunk = std::max<std::size_t>(1, chunk);
  for (std::size_t done = 0; done < count; done += std::min(chunk, count - done)) {
    const auto part = std::span(ids).subspan(done, std::min(chunk, count - done));
    const bool last = done + part.size() == count;
    const BatchItem item{&sequence, part, last ? logits : LogitsFor::kNone};
    const std::size_t before = sequence.length();
    const auto row = model_.forward({&item, 1}, {cancelled, {}});
    if (sequence.length() == before) return false;
    if (last && next != nullptr) *next = largest(row);
  }
  return true;
}

bool SpeedBed::prepare(const SpeedTest& test, const std::function<bool()>& cancelled) {
  if (base_ == nullptr || base_->length() > test.depth) base_ = model_.new_sequence(options_);
  constexpr std::size_t kChunk = 512;
  return read(*base_, 0, test.depth - base_->length(), kChunk, LogitsFor::kNone, cancelled, nullptr);
}

std::optional<SpeedSample> SpeedBed::run(const SpeedTest& test, const std::function<bool()>& cancelled,
                                         const std::function<void()>& prompt_done) {
  if (!prepare(test, cancelled)) return std::nullopt;
  std::vector<std::unique_ptr<Sequence>> sequences(std::max<std::size_t>(1, test.sequences));
  for (auto& sequence : sequences) sequence = base_->fork();
  std::vector<TokenId> ids(sequences.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = tokens(i, test.depth, 1)[0];

  SpeedSample sample;
  sample.checksum = 0xCBF29CE484222325U;
  const auto start = Clock::now();
  if (test.prompt != 0) {
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      if (!read(*sequences[i], i, test.prompt, test.chunk, LogitsFor::kLast, cancelled, &ids[i])) return std::nullopt;
      sample.checksum = add_to_checksum(sample.checksum, ids[i]);
    }
  }
  const auto read_at = Clock::now();
  if (prompt_done) prompt_done();
  const auto generate_at = Clock::now();
  const std::size_t vocab = model_.info().vocab_size;
  std::vector<BatchItem> items(sequences.size());
  for (std::size_t step = 0; step < test.generate; ++step) {
    for (std::size_t i = 0; i < items.size(); ++i)
      items[i] = {sequences[i].get(), std::span<const TokenId>(&ids[i], 1), LogitsFor::kLast};
    const auto logits = model_.forward(items, {cancelled, {}});
    if (logits.empty()) return std::nullopt;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ids[i] = largest(logits.subspan(i * vocab, vocab));
      sample.checksum = add_to_checksum(sample.checksum, ids[i]);
    }
  }
  const auto end = Clock::now();
  sample.prompt_seconds = test.prompt == 0 ? 0 : seconds_between(start, read_at);
  sample.first_token_seconds = sample.prompt_seconds;
  sample.generate_seconds = test.generate == 0 ? 0 : seconds_between(generate_at, end);
  return sample;
}

}  // namespace hk::engine
