// The time mixing of RWKV 6 and 7 (see time_mix.h).
#include "models/recurrent/time_mix.h"

#include <algorithm>
#include <cmath>

#include "models/recurrent/parts.h"

namespace hk::models {

namespace {

constexpr std::size_t kMoreParts = 5;
// Which input each part of TimeMixSpec::lerp_up belongs to.
constexpr TimeMixSpec::Input kPartOf[kMoreParts] = {TimeMixSpec::kDecay, TimeMixSpec::kKey, TimeMixSpec::kValue,
                                                    TimeMixSpec::kReceptance, TimeMixSpec::kGate};

}  // namespace

TimeMixer::TimeMixer(Stage& stage) : stage_(stage), all_(stage.kernels), parts_(stage.kernels), mixed_(stage.kernels) {
  for (std::size_t i = 0; i < TimeMixSpec::kInputs; ++i) inputs_.emplace_back(stage.kernels);
  for (std::size_t i = 0; i < kLowParts; ++i) low_.emplace_back(stage.kernels);
}

std::size_t TimeMixer::bytes() const {
  std::size_t bytes = 0;
  const auto count = [&](const Lane& lane) { bytes += lane.buffer.bytes() + lane.prepared.bytes(); };
  for (const Lane& lane : inputs_) count(lane);
  for (const Lane& lane : low_) count(lane);
  for (const Lane* lane : {&all_, &parts_, &mixed_}) count(*lane);
  for (const RowBuffer& buffer : up_buffers_) bytes += buffer.bytes();
  for (const RowBuffer* buffer : {&more_buffer_, &receptance_buffer_, &key_buffer_, &value_buffer_, &gate_buffer_,
                                  &first_value_buffer_, &removed_buffer_, &known_buffer_, &out_buffer_})
    bytes += buffer->bytes();
  return bytes;
}

Rows TimeMixer::run(const TimeMixSpec& spec, const Rows& input) {
  mix_inputs(spec, input);
  project(spec);
  const std::size_t n = input.n;
  removed_ = removed_buffer_.shape(n, input.cols);
  known_ = known_buffer_.shape(n, input.cols);
  mixed_.shape(n, input.cols);
  if (spec.first) first_value_ = first_value_buffer_.shape(n, input.cols);
  for_rows(stage_.pool, n, [&](std::size_t i) { prepare_heads(spec, i); });
  for_segment_parts(stage_, spec.heads, 1, [&](const Segment& segment, std::size_t head, std::size_t) {
    for (std::size_t row = 0; row < segment.rows; ++row) step(spec, segment, row, head);
  });
  mixed_.prepared.begin(mixed_.rows, {&spec.output});
  for_rows(stage_.pool, n, [&](std::size_t i) { finish_row(spec, i); });
  const Rows out = out_buffer_.shape(n, input.cols);
  stage_.products.add(spec.output, mixed_.prepared, out);
  stage_.products.run("time mix out");
  return out;
}

/// What each projection reads: the row, and of the one before as much as the layer has learned.
void TimeMixer::mix_inputs(const TimeMixSpec& spec, const Rows& input) {
  shift_.begin(stage_, input, spec.shift);
  if (spec.lerp_down) mix_more(spec, input);
  const Matrix* readers[TimeMixSpec::kInputs] = {&spec.receptance, &spec.decay.down, &spec.key,
                                                 &spec.value,      &spec.rate.down,  &spec.gate};
  for (std::size_t p = 0; p < TimeMixSpec::kInputs; ++p) {
    if (spec.lerp[p] == nullptr) continue;
    inputs_[p].shape(input.n, input.cols);
    const Matrix* second = p == TimeMixSpec::kValue  ? &spec.value_mix.down
                           : p == TimeMixSpec::kGate ? &spec.low_gate.down
                                                     : readers[p];
    inputs_[p].prepared.begin(inputs_[p].rows, {readers[p], second});
  }
  for_rows(stage_.pool, input.n, [&](std::size_t i) {
    for (std::size_t p = 0; p < TimeMixSpec::kInputs; ++p) {
      if (spec.lerp[p] == nullptr) continue;
      const float* part = spec.lerp[p];
      if (spec.lerp_down) {
        const auto place = static_cast<std::size_t>(std::ranges::find(kPartOf, p) - kPartOf);
        float* more = more_[place * input.n + i];
        stage_.kernels.add(more, part, input.cols);
        part = more;
      }
      shift_.mix(input, i, part, inputs_[p].rows[i]);
      inputs_[p].prepared.prepare_row(i);
    }
  });
  shift_.end(stage_, input, spec.shift);
}

/// How much more of the row before each input takes, decided by the rows themselves; part after part.
void TimeMixer::mix_more(const TimeMixSpec& spec, const Rows& input) {
  const std::size_t n = input.n;
  const std::size_t rank = spec.lerp_up.first.cols;
  const Rows all = all_.shape(n, input.cols);
  all_.prepared.begin(all, {&spec.lerp_down});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    shift_.mix(input, i, spec.lerp_all, all[i]);
    all_.prepared.prepare_row(i);
  });
  Lane& low = low_[kDecayPart];
  const Rows together = low.shape(n, spec.lerp_down.rows);
  stage_.products.add(spec.lerp_down, all_.prepared, together);
  stage_.products.run("time mix low");
  const Rows parts = parts_.shape(kMoreParts * n, rank);
  const Matrix any = spec.lerp_up[0];
  parts_.prepared.begin(parts, {&any});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    for (std::size_t p = 0; p < kMoreParts; ++p) {
      for (std::size_t c = 0; c < rank; ++c) parts[p * n + i][c] = std::tanh(together[i][p * rank + c]);
      parts_.prepared.prepare_row(p * n + i);
    }
  });
  more_ = more_buffer_.shape(kMoreParts * n, input.cols);
  for (std::size_t p = 0; p < kMoreParts; ++p)
    stage_.products.add_part(spec.lerp_up[p], parts_.prepared, p * n, n, more_[p * n], more_.stride);
  stage_.products.run("time mix low");
}

void TimeMixer::project(const TimeMixSpec& spec) {
  const std::size_t n = inputs_[TimeMixSpec::kKey].rows.n;
  const std::size_t width = spec.heads * spec.head_size;
  const auto input = [&](TimeMixSpec::Input which) -> const PreparedRows& { return inputs_[which].prepared; };
  receptance_ = receptance_buffer_.shape(n, width);
  key_ = key_buffer_.shape(n, width);
  value_ = value_buffer_.shape(n, width);
  gate_ = gate_buffer_.shape(n, width);
  stage_.products.add(spec.receptance, input(TimeMixSpec::kReceptance), receptance_);
  stage_.products.add(spec.key, input(TimeMixSpec::kKey), key_);
  stage_.products.add(spec.value, input(TimeMixSpec::kValue), value_);
  stage_.products.add(spec.gate, input(TimeMixSpec::kGate), gate_);
  const LowRankSpec* lows[kLowParts] = {&spec.decay, &spec.rate, &spec.value_mix, &spec.low_gate};
  const TimeMixSpec::Input sources[kLowParts] = {TimeMixSpec::kDecay, TimeMixSpec::kRate, TimeMixSpec::kValue,
                                                 TimeMixSpec::kGate};
  for (std::size_t p = 0; p < kLowParts; ++p) {
    if (!lows[p]->down) continue;
    stage_.products.add(lows[p]->down, input(sources[p]), low_[p].shape(n, lows[p]->down.rows));
    low_[p].prepared.begin(low_[p].rows, {&lows[p]->up});
    up_[p] = up_buffers_[p].shape(n, width);
  }
  stage_.products.run("time mix in");
  for_rows(stage_.pool, n, [&](std::size_t i) {
    for (std::size_t p = 0; p < kLowParts; ++p) {
      if (!lows[p]->down) continue;
      const Rows& low = low_[p].rows;
      for (std::size_t c = 0; c < low.cols; ++c) {
        if (p == kDecayPart) low[i][c] = std::tanh(low[i][c]);
        if (p == kGatePart) low[i][c] = sigmoid(low[i][c]);
      }
      low_[p].prepared.prepare_row(i);
    }
  });
  for (std::size_t p = 0; p < kLowParts; ++p) stage_.products.add(lows[p]->up, low_[p].prepared, up_[p]);
  stage_.products.run("time mix low");
}

/// Row i's decays in up_[kDecayPart], and for RWKV 7 what keys take away and how fast, and the mixed values.
void TimeMixer::prepare_heads(const TimeMixSpec& spec, std::size_t i) {
  const std::size_t width = key_.cols;
  float* decay = up_[kDecayPart][i];
  if (!spec.removes) {
    for (std::size_t c = 0; c < width; ++c) decay[c] = std::exp(-std::exp(decay[c] + spec.decay.base[c]));
    return;
  }
  constexpr float kSlowest = -0.606531F;  // -e^(-1/2): decays stay above 0.545
  for (std::size_t c = 0; c < width; ++c) decay[c] = std::exp(kSlowest * sigmoid(decay[c] + spec.decay.base[c]));
  if (spec.first) {
    std::copy_n(value_[i], width, first_value_[i]);
  } else {
    const float* mix = up_[kValuePart][i];
    for (std::size_t c = 0; c < width; ++c)
      value_[i][c] += (first_value_[i][c] - value_[i][c]) * sigmoid(mix[c] + spec.value_mix.base[c]);
  }
  const float* rate = up_[kRatePart][i];
  for (std::size_t head = 0; head < spec.heads; ++head) {
    const std::size_t from = head * spec.head_size;
    float sum = 0;
    for (std::size_t c = from; c < from + spec.head_size; ++c) {
      removed_[i][c] = key_[i][c] * spec.key_scale[c];
      sum += removed_[i][c] * removed_[i][c];
    }
    const float scale = 1.0F / std::max(std::sqrt(sum), 1e-12F);
    for (std::size_t c = from; c < from + spec.head_size; ++c) {
      const float a = sigmoid(rate[c] + spec.rate.base[c]);
      removed_[i][c] *= scale;
      known_[i][c] = removed_[i][c] * a;
      key_[i][c] *= 1.0F + (a - 1.0F) * spec.rate_scale[c];
    }
  }
}

/// memory line j: what key channel j says of the values.
void TimeMixer::step(const TimeMixSpec& spec, const Segment& segment, std::size_t row, std::size_t head) {
  const kernels::KernelTable& k = stage_.kernels;
  const std::size_t size = spec.head_size;
  const std::size_t i = segment.first_row + row;
  const std::size_t from = head * size;
  float* memory = segment.sequence->state_after(spec.memory) + head * size * size;
  if (row == 0) {
    const float* before = segment.sequence->state_before(spec.memory) + head * size * size;
    if (before != memory) std::copy_n(before, size * size, memory);
  }
  const float* key = key_[i] + from;
  const float* value = value_[i] + from;
  const float* receptance = receptance_[i] + from;
  const float* decay = up_[kDecayPart][i] + from;
  float* result = mixed_.rows[i] + from;
  std::fill_n(result, size, 0.0F);
  if (spec.removes) {
    const float* removed = removed_[i] + from;
    float* known = gate_[i] + from;  // free in RWKV 7, whose gate has low rank
    std::fill_n(known, size, 0.0F);
    for (std::size_t j = 0; j < size; ++j) k.add_scaled(known, memory + j * size, -removed[j], size);
    for (std::size_t j = 0; j < size; ++j) {
      float* line = memory + j * size;
      k.scale(line, decay[j], size);
      k.add_scaled(line, value, key[j], size);
      k.add_scaled(line, known, known_[i][from + j], size);
      k.add_scaled(result, line, receptance[j], size);
    }
    return;
  }
  const float* bonus = spec.bonus + from;
  for (std::size_t j = 0; j < size; ++j) {
    float* line = memory + j * size;
    k.add_scaled(result, line, receptance[j], size);
    k.add_scaled(result, value, receptance[j] * bonus[j] * key[j], size);
    k.scale(line, decay[j], size);
    k.add_scaled(line, value, key[j], size);
  }
}

void TimeMixer::finish_row(const TimeMixSpec& spec, std::size_t i) {
  const std::size_t size = spec.head_size;
  float* row = mixed_.rows[i];
  for (std::size_t head = 0; head < spec.heads; ++head) {
    const std::size_t from = head * size;
    stage_.kernels.layer_norm(row + from, spec.norm.weight + from, spec.norm.bias + from, spec.norm.epsilon, size,
                              row + from);
    if (!spec.removes) continue;
    float present = 0;
    for (std::size_t c = from; c < from + size; ++c) present += key_[i][c] * receptance_[i][c] * spec.bonus[c];
    stage_.kernels.add_scaled(row + from, value_[i] + from, present, size);
  }
  if (spec.low_gate.down) {
    for (std::size_t c = 0; c < mixed_.rows.cols; ++c) row[c] *= up_[kGatePart][i][c];
  } else if (spec.gate) {
    stage_.kernels.silu_mul(gate_[i], row, mixed_.rows.cols, row);
  }
  mixed_.prepared.prepare_row(i);
}

}  // namespace hk::models
