// The dense feed-forward of a layer (see feed_forward.h).
#include "models/feed_forward.h"

#include <algorithm>

#include "models/activate.h"

namespace hk::models {
namespace {

// Rows that gate and up are unpacked for at a time, at most: their results lie in L2, half a MiB.
constexpr std::size_t kRowsTogether = 256;
// The same where the matrices have too few columns for all workers.
constexpr std::size_t kFewerRowsTogether = 128;
// Pieces for each worker, at least: a slow core holds up the others by one of them.
constexpr std::size_t kPiecesAThread = 4;
constexpr std::size_t kPartCols = PreparedRows::kPartCols;
// Floats from one row of a part to the next: not a power of two, which would put all rows into a few sets of the cache.
constexpr std::size_t kPartStride = kPartCols + 16;

std::size_t pieces(std::size_t cols) { return (cols + kPartCols - 1) / kPartCols; }

std::size_t rows_together(std::size_t cols, std::size_t threads) {
  return pieces(cols) < threads * kPiecesAThread ? kFewerRowsTogether : kRowsTogether;
}

}  // namespace

std::size_t FeedForward::bytes() const {
  std::size_t bytes = gate_buffer_.bytes() + up_buffer_.bytes() + out_buffer_.bytes() + inner_.bytes();
  for (const auto& part : parts_) bytes += part.bytes();
  return bytes;
}

Rows FeedForward::run(const FeedForwardSpec& spec, const PreparedRows& input) {
  if (runs_together(spec, input.rows().n)) {
    make_inner(spec, input);
    const Rows out = out_buffer_.shape(input.rows().n, stage_.spec.width);
    stage_.products.add(spec.down, inner_, out);
    stage_.products.run("down");
    return out;
  }
  add_up(spec, input);
  stage_.products.run("gate, up");
  const Rows out = add_down(spec);
  stage_.products.run("down");
  return out;
}

/// Depends on nothing that changes from pass to pass but on whether there are more than a few rows, so that buffers can
/// be foretold.
bool FeedForward::runs_together(const FeedForwardSpec& spec, std::size_t n) const {
  if (n <= kernels::kStreamedRows || spec.sub_norm || spec.activation.sparsity != 0)
    return false;  // these need whole rows
  const auto threads = static_cast<std::size_t>(stage_.pool.most_threads());
  const std::size_t pieces_of_prompt = pieces(spec.up.rows) * (kRowsTogether / rows_together(spec.up.rows, threads));
  return threads == 1 || pieces_of_prompt >= threads * kPiecesAThread;
}

void FeedForward::make_inner(const FeedForwardSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n, cols = spec.up.rows;
  const auto threads = static_cast<std::size_t>(stage_.pool.most_threads());
  const std::size_t together = rows_together(cols, threads);
  engine::StageTimer timer("gate, up, activation", kernels::storage_type_name(spec.up.type));
  if (timer.listening()) {
    if (spec.gate) timer.add(work_of(spec.gate, n));
    timer.add(work_of(spec.up, n));
  }
  // Single tokens take these as well: passes of both kinds have their buffers after one of many rows.
  gate_buffer_.shape(kernels::kStreamedRows, cols);
  if (spec.gate) up_buffer_.shape(kernels::kStreamedRows, cols);
  inner_.begin(PreparedRows::take_floats({&spec.down}) ? gate_buffer_.shape(n, cols) : Rows{nullptr, 0, n, cols},
               {&spec.down});
  const std::size_t floats = std::min(n, together) * kPartStride;
  parts_.resize(threads);
  for (auto& part : parts_) {
    if (part.size() < 2 * floats) part = engine::AlignedBuffer<float>(2 * floats, "a part of a feed-forward");
  }
  const std::size_t runs = (n + together - 1) / together;
  stage_.pool.run(pieces(cols) * runs, [&](std::size_t chunk, int worker) {
    const std::size_t first = chunk / runs * kPartCols, count = std::min(kPartCols, cols - first);
    const std::size_t row = chunk % runs * together, rows = std::min(together, n - row);
    float* up = parts_[static_cast<std::size_t>(worker)].data();
    float* gate = spec.gate ? up + floats : up;
    multiply_part(stage_.kernels, {spec.up, input, first, count, row, rows, up, kPartStride});
    if (spec.gate) multiply_part(stage_.kernels, {spec.gate, input, first, count, row, rows, gate, kPartStride});
    for (std::size_t i = 0; i < rows; ++i) {
      float* values = gate + i * kPartStride;
      activate(stage_.kernels, spec.activation, values, spec.gate ? up + i * kPartStride : nullptr, count);
      inner_.prepare_part(row + i, first, count, values);
    }
  });
}

void FeedForward::add_up(const FeedForwardSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  up_ = up_buffer_.shape(n, spec.up.rows);
  gate_ = spec.gate ? gate_buffer_.shape(n, spec.gate.rows) : up_;
  stage_.products.add(spec.gate, input, gate_);
  stage_.products.add(spec.up, input, up_);
}

Rows FeedForward::add_down(const FeedForwardSpec& spec) {
  const engine::StageTimer timer("activation");
  inner_.begin(gate_, {&spec.down});
  for_rows(stage_.pool, gate_.n, [&](std::size_t i) {
    activate(stage_.kernels, spec.activation, gate_[i], spec.gate ? up_[i] : nullptr, gate_.cols);
    if (spec.sub_norm) stage_.norm(spec.sub_norm, gate_[i], gate_.cols, gate_[i]);
    inner_.prepare_row(i);
  });
  const Rows out = out_buffer_.shape(gate_.n, stage_.spec.width);
  stage_.products.add(spec.down, inner_, out);
  return out;
}

}  // namespace hk::models
