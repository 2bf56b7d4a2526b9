// engine::Model for every family (see transformer.h).
#include "models/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"

namespace hk::models {

using engine::BatchItem;
using engine::ForwardControl;
using engine::LogitsFor;
using engine::SequenceOptions;

namespace {

// Rows of one chunk: enough to make weight tiles worth unpacking, few enough that activations stay in tens of MiB and a
// cancellation is noticed soon.
constexpr std::size_t kChunkRows = 256;

std::uint64_t owned_bytes(const ModelSpec& spec) {
  std::uint64_t bytes = 0;
  for (const std::vector<float>& values : spec.owned) bytes += values.size() * sizeof(float);
  return bytes;
}

std::size_t wanted_rows(LogitsFor logits, std::size_t tokens) {
  if (tokens == 0 || logits == LogitsFor::kNone) return 0;
  return logits == LogitsFor::kLast ? 1 : tokens;
}

}  // namespace

Transformer::Transformer(std::shared_ptr<engine::ModelReader> reader, ModelSpec spec, engine::ModelInfo info,
                         const kernels::KernelTable& kernels, engine::ThreadPool& pool)
    : reader_(std::move(reader)),
      spec_(std::move(spec)),
      info_(std::move(info)),
      kernels_(kernels),
      pool_(pool),
      pass_(spec_, kernels, pool) {}

std::unique_ptr<engine::Sequence> Transformer::new_sequence(const SequenceOptions& options) {
  if (options.context_length == 0)
    throw Error("a sequence needs a context of at least one position", ErrorKind::kUsage);
  return std::make_unique<KvSequence>(this, spec_, options);
}

std::uint64_t Transformer::state_bytes(const SequenceOptions& options, std::size_t positions) const {
  std::uint64_t bytes = spec_.state_floats == 0 ? 0 : RecurrentState::most_bytes(spec_.state_floats, positions);
  for (const KvSlot& slot : spec_.kv_slots) {
    std::size_t pages = (positions + kernels::kKvPage - 1) / kernels::kKvPage;
    if (slot.window != 0)
      pages = std::min(pages, slot.window / kernels::kKvPage + 3);  // both ends cut, one page of slack
    bytes += static_cast<std::uint64_t>(pages) * kv_page_bytes(slot, options.kv);
  }
  return bytes;
}

std::uint64_t Transformer::scratch_bytes() const { return pass_.bytes() + logits_.bytes() + owned_bytes(spec_); }

/// By trying: a pass of its own takes the buffers of a full chunk, and of one row at the end of the context (where
/// attention keeps partial sums, as many as for any), without computing or touching them.
std::uint64_t Transformer::expected_scratch_bytes(std::size_t positions, std::size_t logit_rows) const {
  positions = std::max<std::size_t>(1, positions);
  const std::size_t rows = std::min(positions, kChunkRows);
  Pass pass(spec_, kernels_, pool_);
  KvSequence sequence(this, spec_, {positions, kernels::KvType::kF16});
  sequence.prepare(0, rows);
  const std::vector<engine::TokenId> tokens(rows, 0);
  std::vector<std::uint32_t> wanted(std::min(std::max<std::size_t>(1, logit_rows), rows));
  std::iota(wanted.begin(), wanted.end(), 0U);
  const Segment prompt{&sequence, 0, rows, 0};
  const engine::ThreadPool::Rehearsal rehearsal(pool_);
  const ForwardControl none;
  const PassControl control{none.cancelled, none.progress, 0, rows};
  pass.run({&prompt, 1}, tokens, wanted, nullptr, control);
  const Segment token{&sequence, 0, 1, positions - 1};
  pass.run({&token, 1}, std::span(tokens).first(1), std::span(wanted).first(1), nullptr, control);
  const std::uint64_t logits = std::max(std::max<std::size_t>(1, logit_rows) * spec_.vocab_size, logits_.size());
  return std::max(pass.bytes(), pass_.bytes()) + logits * sizeof(float) + owned_bytes(spec_);
}

/// Checks everything that can be wrong with the batch; after this only memory can run out.
void Transformer::accept(std::span<const BatchItem> items) {
  work_.clear();
  for (const BatchItem& item : items) {
    auto* sequence = dynamic_cast<KvSequence*>(item.sequence);
    if (sequence == nullptr || sequence->owner() != this)
      throw Error("a batch holds a sequence that was not made by this model", ErrorKind::kUsage);
    for (const Work& other : work_) {
      if (other.sequence == sequence) throw Error("a batch holds the same sequence twice", ErrorKind::kUsage);
    }
    if (item.tokens.size() > sequence->capacity() - sequence->length())
      throw Error(fmt::format("the context of {} positions is full: it holds {} and {} more were given",
                              sequence->capacity(), sequence->length(), item.tokens.size()));
    const std::size_t learned = spec_.position_embedding ? spec_.position_embedding.rows : sequence->capacity();
    if (sequence->length() + item.tokens.size() > learned)
      throw Error(
          fmt::format("{}: the model has learned {} positions only: the sequence holds {} and {} more were given",
                      reader_->path(), learned, sequence->length(), item.tokens.size()));
    for (const engine::TokenId id : item.tokens) {
      if (id < 0 || static_cast<std::size_t>(id) >= spec_.token_embedding.rows)
        throw Error(
            fmt::format("the token id {} is outside the model's vocabulary of {}", id, spec_.token_embedding.rows));
    }
    work_.push_back({sequence, item.tokens, item.logits, sequence->length(), 0});
  }
}

/// Fills segments_, tokens_ and wanted_ with the next rows, items in order. Returns their number.
std::size_t Transformer::next_chunk() {
  segments_.clear();
  tokens_.clear();
  wanted_.clear();
  for (Work& work : work_) {
    std::size_t rows = std::min(work.tokens.size() - work.done, kChunkRows - tokens_.size());
    // Recurrent state can be kept where a chunk ends, so chunks end where pages do.
    if (spec_.state_floats != 0) rows = std::min(rows, kernels::kKvPage - (work.start + work.done) % kernels::kKvPage);
    if (rows == 0) continue;
    segments_.push_back({work.sequence, tokens_.size(), rows, work.start + work.done});
    for (std::size_t i = work.done; i < work.done + rows; ++i) {
      if (work.logits == LogitsFor::kAll || (work.logits == LogitsFor::kLast && i + 1 == work.tokens.size()))
        wanted_.push_back(static_cast<std::uint32_t>(tokens_.size()));
      tokens_.push_back(work.tokens[i]);
    }
    work.done += rows;
    if (tokens_.size() == kChunkRows) break;
  }
  return tokens_.size();
}

bool Transformer::run_chunks(const ForwardControl& control, std::size_t total) {
  float* logits = logits_.data();
  std::size_t done = 0;
  while (const std::size_t rows = next_chunk()) {
    for (const Segment& segment : segments_) segment.sequence->prepare(segment.position, segment.rows);
    pool_.use_share(rows);
    if (!pass_.run(segments_, tokens_, wanted_, logits, {control.cancelled, control.progress, done, total}))
      return false;
    logits += wanted_.size() * spec_.vocab_size;
    done += rows;
    for (const Segment& segment : segments_) segment.sequence->commit(segment.position + segment.rows);
    for (const Work& work : work_) {
      // Until the call has succeeded, the way back to its start stays open; an empty sequence needs nothing for that.
      const std::size_t length = work.sequence->length();
      work.sequence->release_unseen(length, work.start == 0 ? length : work.start);
    }
    if (control.progress) control.progress(done, total);
  }
  return true;
}

void Transformer::roll_back() {
  for (const Work& work : work_) {
    work.sequence->truncate(work.start);
    work.sequence->end_call(0);
  }
}

std::span<const float> Transformer::forward(std::span<const BatchItem> items, const ForwardControl& control) {
  accept(items);
  std::size_t rows = 0;
  std::size_t total = 0;
  for (const BatchItem& item : items) {
    rows += wanted_rows(item.logits, item.tokens.size());
    total += item.tokens.size();
  }
  if (rows * spec_.vocab_size > logits_.size())
    logits_ = engine::AlignedBuffer<float>(rows * spec_.vocab_size, "the logits of a batch");
  for (const Work& work : work_) work.sequence->begin_call();
  bool completed = false;
  try {
    completed = run_chunks(control, total);
  } catch (...) {
    roll_back();
    throw;
  }
  if (!completed) {
    roll_back();
    return {};
  }
  for (const Work& work : work_) {
    work.sequence->end_call(work.tokens.size());
    work.sequence->release_unseen(work.sequence->length(), work.sequence->length());
  }
  return {logits_.data(), rows * spec_.vocab_size};
}

}  // namespace hk::models
