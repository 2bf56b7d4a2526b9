// The gated delta rule (see delta.h).
#include "models/recurrent/delta.h"

#include <algorithm>
#include <cmath>

#include "models/recurrent/convolution.h"
#include "models/recurrent/parts.h"

namespace hk::models {

std::size_t DeltaMixer::bytes() const {
  std::size_t bytes = mixed_rows_.bytes() + alpha_low_.bytes() + gate_low_.bytes();
  for (const RowBuffer* buffer :
       {&alpha_low_buffer_, &gate_low_buffer_, &qkv_buffer_, &conv_buffer_, &gate_buffer_, &beta_buffer_,
        &alpha_buffer_, &both_buffer_, &error_buffer_, &mixed_buffer_, &out_buffer_})
    bytes += buffer->bytes();
  return bytes;
}

Rows DeltaMixer::run(const DeltaSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  project(spec, input);
  engine::StageTimer timer("convolution");
  conv_ = conv_buffer_.shape(n, qkv_.cols);
  for_segment_parts(stage_, qkv_.cols, kChannelsATask,
                    [&](const Segment& segment, std::size_t first, std::size_t count) {
                      convolve(spec.convolution, segment, qkv_, conv_, first, count);
                    });
  for_rows(stage_.pool, n, [&](std::size_t i) { prepare_heads(spec, i); });

  timer.next("delta rule");
  const std::size_t width = spec.value_heads * spec.value_length;
  error_ = error_buffer_.shape(n, width);
  mixed_ = mixed_buffer_.shape(n, width);
  for_segment_parts(stage_, spec.value_heads, 1, [&](const Segment& segment, std::size_t head, std::size_t) {
    for (std::size_t row = 0; row < segment.rows; ++row) step(spec, segment, row, head);
  });

  mixed_rows_.begin(mixed_, {&spec.out});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    for (std::size_t head = 0; head < spec.value_heads; ++head) {
      float* part = mixed_[i] + head * spec.value_length;
      stage_.norm(spec.norm, part, spec.value_length, part);
    }
    if (spec.sigmoid_gate) {
      for (std::size_t c = 0; c < width; ++c) mixed_[i][c] *= sigmoid(gate_[i][c]);
    } else {
      stage_.kernels.silu_mul(gate_[i], mixed_[i], width, mixed_[i]);
    }
    mixed_rows_.prepare_row(i);
  });
  timer.stop();
  const Rows out = out_buffer_.shape(n, stage_.spec.width);
  stage_.products.add(spec.out, mixed_rows_, out);
  stage_.products.run("delta out");
  return out;
}

void DeltaMixer::project(const DeltaSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  const std::size_t key_width = spec.key_heads * spec.key_length;
  const std::size_t value_width = spec.value_heads * spec.value_length;
  qkv_ = qkv_buffer_.shape(n, 2 * key_width + value_width);
  gate_ = gate_buffer_.shape(n, value_width);
  beta_ = beta_buffer_.shape(n, spec.value_heads);
  alpha_ = alpha_buffer_.shape(n, spec.channel_alpha.up ? key_width : spec.value_heads);
  both_ = spec.beta_alpha ? both_buffer_.shape(n, 2 * spec.value_heads) : Rows{};
  Products& products = stage_.products;
  products.add(spec.qkv, input, qkv_);
  products.add_part(spec.q, input, 0, n, qkv_.data, qkv_.stride);
  products.add_part(spec.k, input, 0, n, qkv_.data + key_width, qkv_.stride);
  products.add_part(spec.v, input, 0, n, qkv_.data + 2 * key_width, qkv_.stride);
  products.add(spec.gate, input, gate_);
  products.add(spec.beta_alpha, input, both_);
  products.add(spec.beta, input, beta_);
  products.add(spec.alpha, input, alpha_);
  const Rows alpha_low = alpha_low_buffer_.shape(n, spec.channel_alpha.down.rows);
  const Rows gate_low = gate_low_buffer_.shape(n, spec.low_gate.down.rows);
  alpha_low_.begin(alpha_low, {&spec.channel_alpha.up});
  gate_low_.begin(gate_low, {&spec.low_gate.up});
  products.add(spec.channel_alpha.down, input, alpha_low);
  products.add(spec.low_gate.down, input, gate_low);
  products.run("delta in");
  if (spec.channel_alpha.up || spec.low_gate.up) project_low(spec);
}

void DeltaMixer::project_low(const DeltaSpec& spec) {
  for_rows(stage_.pool, alpha_.n, [&](std::size_t i) {
    if (spec.channel_alpha.up) alpha_low_.prepare_row(i);
    if (spec.low_gate.up) gate_low_.prepare_row(i);
  });
  stage_.products.add(spec.channel_alpha.up, alpha_low_, alpha_);
  stage_.products.add(spec.low_gate.up, gate_low_, gate_);
  stage_.products.run("delta in");
}

/// Row i's q and k of length one (q also over the root of its dimensions), what each head learns and what it keeps.
void DeltaMixer::prepare_heads(const DeltaSpec& spec, std::size_t i) {
  stage_.kernels.silu_mul(conv_[i], nullptr, conv_.cols, conv_[i]);
  const float q_scale = 1.0F / std::sqrt(static_cast<float>(spec.key_length));
  for (std::size_t head = 0; head < 2 * spec.key_heads; ++head) {
    float* x = conv_[i] + head * spec.key_length;
    float sum = 0;
    for (std::size_t c = 0; c < spec.key_length; ++c) sum += x[c] * x[c];
    const float scale = 1.0F / std::max(std::sqrt(sum), spec.epsilon);
    stage_.kernels.scale(x, head < spec.key_heads ? scale * q_scale : scale, spec.key_length);
  }
  if (spec.beta_alpha) {
    const std::size_t ratio = spec.value_heads / spec.key_heads;
    for (std::size_t head = 0; head < spec.value_heads; ++head) {
      const float* pair = both_[i] + head / ratio * 2 * ratio + head % ratio;
      beta_[i][head] = pair[0];
      alpha_[i][head] = pair[ratio];
    }
  }
  for (std::size_t head = 0; head < spec.value_heads; ++head) beta_[i][head] = sigmoid(beta_[i][head]);
  if (spec.channel_alpha.up) {
    for (std::size_t c = 0; c < alpha_.cols; ++c)
      alpha_[i][c] = std::exp(softplus(alpha_[i][c] + spec.channel_alpha.base[c]) * spec.decay[c / spec.key_length]);
    return;
  }
  for (std::size_t head = 0; head < spec.value_heads; ++head) {
    alpha_[i][head] = std::exp(softplus(alpha_[i][head] + spec.dt_bias[head]) * spec.decay[head]);
  }
}

void DeltaMixer::step(const DeltaSpec& spec, const Segment& segment, std::size_t row, std::size_t head) {
  const kernels::KernelTable& k = stage_.kernels;
  const std::size_t i = segment.first_row + row;
  const std::size_t size = spec.key_length * spec.value_length;
  const std::size_t key_head = spec.grouped ? head / (spec.value_heads / spec.key_heads) : head % spec.key_heads;
  const float* query = conv_[i] + key_head * spec.key_length;
  const float* key = query + spec.key_heads * spec.key_length;
  const float* value = conv_[i] + 2 * spec.key_heads * spec.key_length + head * spec.value_length;
  float* memory = segment.sequence->state_after(spec.state) + head * size;
  if (row == 0) {
    const float* before = segment.sequence->state_before(spec.state) + head * size;
    if (before != memory) std::copy_n(before, size, memory);
  }
  if (spec.channel_alpha.up) {
    const float* alpha = alpha_[i] + key_head * spec.key_length;
    for (std::size_t d = 0; d < spec.key_length; ++d)
      k.scale(memory + d * spec.value_length, alpha[d], spec.value_length);
  } else {
    k.scale(memory, alpha_[i][head], size);
  }
  // what the memory says for this key, taken from what it should say
  float* error = error_[i] + head * spec.value_length;
  std::copy_n(value, spec.value_length, error);
  for (std::size_t d = 0; d < spec.key_length; ++d)
    k.add_scaled(error, memory + d * spec.value_length, -key[d], spec.value_length);
  k.scale(error, beta_[i][head], spec.value_length);
  float* result = mixed_[i] + head * spec.value_length;
  std::fill_n(result, spec.value_length, 0.0F);
  for (std::size_t d = 0; d < spec.key_length; ++d) {
    float* line = memory + d * spec.value_length;
    k.add_scaled(line, error, key[d], spec.value_length);
    k.add_scaled(result, line, query[d], spec.value_length);
  }
}

}  // namespace hk::models
