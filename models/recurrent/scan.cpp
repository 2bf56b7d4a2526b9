// The selective scans of Mamba 1 and 2 (see scan.h).
#include "models/recurrent/scan.h"

#include <algorithm>
#include <cmath>

#include "models/recurrent/convolution.h"
#include "models/recurrent/parts.h"

namespace hk::models {

std::size_t ScanMixer::bytes() const {
  std::size_t bytes = inner_rows_.bytes() + dt_rows_.bytes();
  for (const RowBuffer* buffer : {&in_buffer_, &before_buffer_, &conv_buffer_, &second_buffer_, &dt_buffer_,
                                  &low_buffer_, &mixed_buffer_, &out_buffer_})
    bytes += buffer->bytes();
  return bytes;
}

Rows ScanMixer::run(const ScanSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  in_ = in_buffer_.shape(n, spec.in.rows);
  stage_.products.add(spec.in, input, in_);
  stage_.products.run("scan in");

  engine::StageTimer timer("convolution");
  // Mamba-2 puts z first, Mamba-1 x.
  const Rows before{in_.data + (spec.x ? 0 : spec.inner), in_.stride, n, spec.convolution.channels};
  conv_ = conv_buffer_.shape(n, before.cols);
  for_segment_parts(stage_, before.cols, kChannelsATask,
                    [&](const Segment& segment, std::size_t first, std::size_t count) {
                      convolve(spec.convolution, segment, before, conv_, first, count);
                    });
  timer.stop();
  mixed_ = mixed_buffer_.shape(n, spec.inner);
  if (spec.x) {
    scan_channels(spec);
  } else {
    scan_heads(spec);
  }
  inner_rows_.begin(mixed_, {&spec.out});
  for_rows(stage_.pool, n, [&](std::size_t i) { finish_row(spec, i); });
  const Rows out = out_buffer_.shape(n, stage_.spec.width);
  stage_.products.add(spec.out, inner_rows_, out);
  stage_.products.run("scan out");
  return out;
}

void ScanMixer::scan_heads(const ScanSpec& spec) {
  dt_ = dt_buffer_.shape(in_.n, spec.heads);
  for_rows(stage_.pool, in_.n, [&](std::size_t i) {
    stage_.kernels.silu_mul(conv_[i], nullptr, conv_.cols, conv_[i]);
    const float* dt = in_[i] + spec.inner + spec.convolution.channels;
    for (std::size_t head = 0; head < spec.heads; ++head) dt_[i][head] = softplus(dt[head] + spec.dt_bias[head]);
  });
  const engine::StageTimer timer("scan");
  for_segment_parts(stage_, spec.heads, 1, [&](const Segment& segment, std::size_t head, std::size_t) {
    for (std::size_t row = 0; row < segment.rows; ++row) step_head(spec, segment, row, head);
  });
}

void ScanMixer::step_head(const ScanSpec& spec, const Segment& segment, std::size_t row, std::size_t head) {
  const kernels::KernelTable& k = stage_.kernels;
  const std::size_t i = segment.first_row + row;
  const std::size_t length = spec.inner / spec.heads;
  const std::size_t size = spec.state_length * length;
  const std::size_t group = head / (spec.heads / spec.groups);
  const float* x = conv_[i] + head * length;
  const float* b = conv_[i] + spec.inner + group * spec.state_length;
  const float* c = b + spec.groups * spec.state_length;
  float* memory = segment.sequence->state_after(spec.state) + head * size;
  if (row == 0) {
    const float* before = segment.sequence->state_before(spec.state) + head * size;
    if (before != memory) std::copy_n(before, size, memory);
  }
  const float dt = dt_[i][head];
  k.scale(memory, std::exp(dt * spec.decay[head]), size);
  float* result = mixed_[i] + head * length;
  for (std::size_t d = 0; d < length; ++d) result[d] = spec.skip[head] * x[d];
  for (std::size_t s = 0; s < spec.state_length; ++s) {
    k.add_scaled(memory + s * length, x, dt * b[s], length);
    k.add_scaled(result, memory + s * length, c[s], length);
  }
}

void ScanMixer::scan_channels(const ScanSpec& spec) {
  project_again(spec);
  const engine::StageTimer timer("scan");
  constexpr std::size_t kChannels = 64;
  for_segment_parts(stage_, spec.inner, kChannels, [&](const Segment& segment, std::size_t first, std::size_t count) {
    for (std::size_t row = 0; row < segment.rows; ++row) step_channels(spec, segment, row, first, count);
  });
}

/// dt, B and C of every row from what the convolution gave.
void ScanMixer::project_again(const ScanSpec& spec) {
  const std::size_t n = in_.n;
  inner_rows_.begin(conv_, {&spec.x});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    stage_.kernels.silu_mul(conv_[i], nullptr, conv_.cols, conv_[i]);
    inner_rows_.prepare_row(i);
  });
  second_ = second_buffer_.shape(n, spec.x.rows);
  stage_.products.add(spec.x, inner_rows_, second_);
  stage_.products.run("scan x");

  const Rows low = low_buffer_.shape(n, spec.dt_rank);
  dt_rows_.begin(low, {&spec.dt});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    float* b = second_[i] + spec.dt_rank;
    float* c = b + spec.state_length;
    std::copy_n(second_[i], spec.dt_rank, low[i]);
    if (spec.dt_norm) stage_.norm(spec.dt_norm, low[i], spec.dt_rank, low[i]);
    if (spec.b_norm) stage_.norm(spec.b_norm, b, spec.state_length, b);
    if (spec.c_norm) stage_.norm(spec.c_norm, c, spec.state_length, c);
    dt_rows_.prepare_row(i);
  });
  dt_ = dt_buffer_.shape(n, spec.inner);
  stage_.products.add(spec.dt, dt_rows_, dt_);
  stage_.products.run("scan dt");
}

void ScanMixer::step_channels(const ScanSpec& spec, const Segment& segment, std::size_t row, std::size_t first,
                              std::size_t count) {
  const std::size_t i = segment.first_row + row;
  const std::size_t length = spec.state_length;
  const float* b = second_[i] + spec.dt_rank;
  const float* c = b + length;
  float* after = segment.sequence->state_after(spec.state);
  const float* before = row == 0 ? segment.sequence->state_before(spec.state) : after;
  for (std::size_t channel = first; channel < first + count; ++channel) {
    const float dt = softplus(dt_[i][channel] + spec.dt_bias[channel]);
    const float x = conv_[i][channel];
    float result = 0;
    for (std::size_t s = 0; s < length; ++s) {
      const std::size_t at = channel * length + s;
      after[at] = before[at] * std::exp(dt * spec.decay[at]) + dt * x * b[s];
      result += after[at] * c[s];
    }
    mixed_[i][channel] = result + spec.skip[channel] * x;
  }
}

/// The gate, and for some models a norm over each group.
void ScanMixer::finish_row(const ScanSpec& spec, std::size_t i) {
  const float* z = in_[i] + (spec.x ? spec.inner : 0);
  stage_.kernels.silu_mul(z, mixed_[i], spec.inner, mixed_[i]);
  if (spec.norm) {
    const std::size_t length = spec.inner / spec.groups;
    NormSpec own = spec.norm;
    for (std::size_t group = 0; group < spec.groups; ++group) {
      stage_.norm(own, mixed_[i] + group * length, length, mixed_[i] + group * length);
      if (own.weight != nullptr) own.weight += length;
    }
  }
  inner_rows_.prepare_row(i);
}

}  // namespace hk::models
