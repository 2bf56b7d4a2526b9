// Attention as a part of a layer (see attention_mixer.h).
#include "models/attention_mixer.h"

#include <algorithm>
#include <cmath>

namespace hk::models {
namespace {

// Rows whose keys are stored one head after the other. Sixteen positions share the cache lines of their keys
// (kernels/kv_type.h), 4 KiB for 128 dimensions: all heads of one row after the other would throw each other out of L1.
constexpr std::size_t kRowsStored = 16;

}  // namespace

AttentionMixer::AttentionMixer(Stage& stage, Attention& attention)
    : stage_(stage), attention_(attention), mixed_rows_(stage.kernels) {}

std::size_t AttentionMixer::bytes() const {
  std::size_t bytes = mixed_rows_.bytes();
  for (const RowBuffer* buffer :
       {&q_buffer_, &k_buffer_, &v_buffer_, &gate_buffer_, &both_buffer_, &mixed_buffer_, &out_buffer_})
    bytes += buffer->bytes();
  return bytes;
}

Rows AttentionMixer::run(const AttentionSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  project(spec, input);
  engine::StageTimer timer("rotation, cache");
  for_row_runs(stage_.pool, n, [&](std::size_t begin, std::size_t end) {
    for (std::size_t first = begin; first < end; first += kRowsStored) {
      const std::size_t count = std::min(kRowsStored, end - first);
      for (std::size_t i = first; i < first + count; ++i) place_heads(spec, i);
      if (spec.k) store(spec, first, count);
    }
  });

  const Rows mixed = mixed_buffer_.shape(n, spec.heads * spec.value_length);
  timer.next("attention", spec.window != 0 ? "window" : "");
  if (timer.listening()) timer.add(attention_.work(spec, stage_.segments));
  attention_.run(spec, stage_.segments, q_, mixed);
  timer.next("quantize");
  mixed_rows_.begin(mixed, {&spec.output});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    if (gate_.n != 0) apply_gate(spec, gate_[i], mixed[i]);
    if (spec.sub_norm) stage_.norm(spec.sub_norm, mixed[i], mixed.cols, mixed[i]);
    mixed_rows_.prepare_row(i);
  });
  timer.stop();
  const Rows out = out_buffer_.shape(n, stage_.spec.width);
  stage_.products.add(spec.output, mixed_rows_, out);
  stage_.products.run("attention output");
  return out;
}

void AttentionMixer::project(const AttentionSpec& spec, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  q_ = q_buffer_.shape(n, spec.heads * spec.key_length);
  k_ = v_ = gate_ = both_ = {};
  if (spec.q_holds_gate) {
    both_ = both_buffer_.shape(n, 2 * q_.cols);
    gate_ = gate_buffer_.shape(n, q_.cols);
    stage_.products.add(spec.q, input, both_);
  } else {
    stage_.products.add(spec.q, input, q_);
  }
  if (spec.gate) {
    gate_ = gate_buffer_.shape(n, spec.gate.rows);
    stage_.products.add(spec.gate, input, gate_);
  }
  if (spec.k) {
    k_ = k_buffer_.shape(n, spec.kv_heads * spec.key_length);
    v_ = v_buffer_.shape(n, spec.kv_heads * spec.value_length);
    stage_.products.add(spec.k, input, k_);
    stage_.products.add(spec.v, input, v_);
  }
  stage_.products.run("q, k, v");
}

/// Row i's q, k and v from projection to use: clamped, normalised, rotated, scaled.
void AttentionMixer::place_heads(const AttentionSpec& spec, std::size_t i) {
  if (spec.q_holds_gate) {
    for (std::size_t head = 0; head < spec.heads; ++head) {
      const float* both = both_[i] + 2 * head * spec.key_length;
      std::copy_n(both, spec.key_length, q_[i] + head * spec.key_length);
      std::copy_n(both + spec.key_length, spec.key_length, gate_[i] + head * spec.key_length);
    }
  }
  if (spec.k && !spec.v) std::copy_n(k_[i], k_.cols, v_[i]);
  if (spec.clamp != 0) {
    for (const Rows& rows : {q_, k_, v_}) {
      for (std::size_t c = 0; c < rows.cols; ++c) rows[i][c] = std::clamp(rows[i][c], -spec.clamp, spec.clamp);
    }
  }
  const auto norm_both = [&] {
    norm_heads(spec, spec.q_norm, q_[i], spec.heads, spec.key_length);
    if (spec.k) norm_heads(spec, spec.k_norm, k_[i], spec.kv_heads, spec.key_length);
  };
  if (!spec.head_norm_after_rope) norm_both();
  rotate(spec, i, q_[i], spec.heads);
  if (spec.k) rotate(spec, i, k_[i], spec.kv_heads);
  if (spec.head_norm_after_rope) norm_both();
  float scale = spec.scale;
  if (spec.temperature_scale != 0) {
    const double step =
        std::floor((static_cast<double>(stage_.places[i].position) + static_cast<double>(spec.temperature_offset)) /
                   spec.temperature_length);
    scale *= static_cast<float>(1 + static_cast<double>(spec.temperature_scale) * std::log(1 + step));
  }
  stage_.kernels.scale(q_[i], scale, q_.cols);
  if (!spec.k || !spec.v_norm) return;
  for (std::size_t head = 0; head < spec.kv_heads; ++head) {
    float* value = v_[i] + head * spec.value_length;
    stage_.norm(spec.v_norm, value, spec.value_length, value);
  }
}

/// Keys and values of rows into the cache, head by head.
void AttentionMixer::store(const AttentionSpec& spec, std::size_t first, std::size_t count) {
  for (std::size_t head = 0; head < spec.kv_heads; ++head) {
    for (std::size_t i = first; i < first + count; ++i) {
      const RowPlace& place = stage_.places[i];
      const std::size_t page = place.position / kernels::kKvPage;
      const std::size_t in_page = place.position % kernels::kKvPage;
      const kernels::KvType type = place.sequence->kv_type();
      stage_.kernels.store_key(k_[i] + head * spec.key_length, spec.key_length, type, in_page,
                               place.sequence->keys(spec.kv_slot, head, page));
      stage_.kernels.store_value(v_[i] + head * spec.value_length, spec.value_length, type, in_page,
                                 place.sequence->values(spec.kv_slot, head, page));
    }
  }
}

void AttentionMixer::norm_heads(const AttentionSpec& spec, const NormSpec& head_norm, float* row, std::size_t heads,
                                std::size_t size) const {
  if (!head_norm) return;
  if (spec.head_norm_scope == HeadNormScope::kWholeRow) {
    stage_.norm(head_norm, row, heads * size, row);
    return;
  }
  NormSpec own = head_norm;
  for (std::size_t head = 0; head < heads; ++head) {
    stage_.norm(own, row + head * size, size, row + head * size);
    if (spec.head_norm_scope != HeadNormScope::kOwnWeight) continue;
    if (own.weight != nullptr) own.weight += size;
    if (own.bias != nullptr) own.bias += size;
  }
}

void AttentionMixer::rotate(const AttentionSpec& spec, std::size_t i, float* row, std::size_t heads) const {
  if (!spec.rope) return;
  const Angles& angles = stage_.angles[*spec.rope];
  const std::size_t n_rot = stage_.spec.ropes[*spec.rope].n_rot;
  const auto turn = spec.rope_style == RopeStyle::kAdjacent ? stage_.kernels.rope_adjacent : stage_.kernels.rope_halves;
  for (std::size_t head = 0; head < heads; ++head)
    turn(row + head * spec.key_length, angles.cos[i], angles.sin[i], n_rot);
}

/// A gate has a value for each head or for each of its dimensions.
void AttentionMixer::apply_gate(const AttentionSpec& spec, const float* gate, float* row) const {
  const auto sigmoid = [](float x) { return 1.0F / (1.0F + std::exp(-x)); };
  if (gate_.cols == spec.heads) {
    for (std::size_t head = 0; head < spec.heads; ++head)
      stage_.kernels.scale(row + head * spec.value_length, sigmoid(gate[head]), spec.value_length);
    return;
  }
  for (std::size_t c = 0; c < gate_.cols; ++c) row[c] *= sigmoid(gate[c]);
}

}  // namespace hk::models
