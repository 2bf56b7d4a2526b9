// Multi-head latent attention (see latent_mixer.h).
#include "models/latent_mixer.h"

#include <algorithm>

namespace hk::models {

LatentMixer::LatentMixer(Stage& stage, Attention& attention)
    : stage_(stage),
      attention_(attention),
      low_rows_(stage.kernels),
      latent_rows_(stage.kernels),
      head_rows_(stage.kernels),
      mixed_rows_(stage.kernels) {
  std::size_t heads = 0;
  for (const LayerSpec& layer : stage.spec.layers) heads = std::max(heads, layer.latent.k_b.count);
  stage.products.reserve(heads + 4);
}

std::size_t LatentMixer::bytes() const {
  std::size_t bytes = low_rows_.bytes() + latent_rows_.bytes() + head_rows_.bytes() + mixed_rows_.bytes();
  for (const RowBuffer* buffer :
       {&low_buffer_, &full_buffer_, &kv_buffer_, &latent_buffer_, &both_buffer_, &heads_buffer_, &q_buffer_,
        &key_buffer_, &mixed_buffer_, &values_buffer_, &out_buffer_})
    bytes += buffer->bytes();
  return bytes;
}

Rows LatentMixer::run(const AttentionSpec& spec, const LatentSpec& latent, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  project(latent, input);
  if (latent.kv_b) {
    place_heads(spec, latent);
  } else {
    place_latent(spec, latent);
  }
  Rows mixed = mixed_buffer_.shape(n, spec.heads * spec.value_length);
  {
    engine::StageTimer timer("attention", "latent");
    if (timer.listening()) timer.add(attention_.work(spec, stage_.segments));
    attention_.run(spec, stage_.segments, q_, mixed);
  }
  if (!latent.kv_b) mixed = expand(spec, latent, mixed);
  mixed_rows_.begin(mixed, {&spec.output});
  for_rows(stage_.pool, n, [&](std::size_t i) { mixed_rows_.prepare_row(i); });
  const Rows out = out_buffer_.shape(n, stage_.spec.width);
  stage_.products.add(spec.output, mixed_rows_, out);
  stage_.products.run("attention output");
  return out;
}

/// Full queries, the normalised latent, and with kv_b the keys and values made of it.
void LatentMixer::project(const LatentSpec& latent, const PreparedRows& input) {
  const std::size_t n = input.rows().n;
  full_ = full_buffer_.shape(n, latent.q.rows);
  kv_ = kv_buffer_.shape(n, latent.kv_a.rows);
  latent_ = latent_buffer_.shape(n, latent.rank);
  const Rows low = latent.q_a ? low_buffer_.shape(n, latent.q_a.rows) : Rows{};
  stage_.products.add(latent.q_a, input, low);
  if (!latent.q_a) stage_.products.add(latent.q, input, full_);
  stage_.products.add(latent.kv_a, input, kv_);
  stage_.products.run("q, k, v");

  if (latent.q_a) low_rows_.begin(low, {&latent.q});
  latent_rows_.begin(latent_, {&latent.kv_b});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    stage_.norm(latent.kv_a_norm, kv_[i], latent.rank, latent_[i]);
    latent_rows_.prepare_row(i);
    if (!latent.q_a) return;
    stage_.norm(latent.q_a_norm, low[i], low.cols, low[i]);
    low_rows_.prepare_row(i);
  });
  if (latent.q_a) stage_.products.add(latent.q, low_rows_, full_);
  if (latent.kv_b) {
    both_ = both_buffer_.shape(n, latent.kv_b.rows);
    stage_.products.add(latent.kv_b, latent_rows_, both_);
  }
  stage_.products.run("q, k, v");
}

void LatentMixer::rotate(const AttentionSpec& spec, std::size_t i, float* part) const {
  if (!spec.rope) return;
  const Angles& angles = stage_.angles[*spec.rope];
  const auto turn = spec.rope_style == RopeStyle::kAdjacent ? stage_.kernels.rope_adjacent : stage_.kernels.rope_halves;
  turn(part, angles.cos[i], angles.sin[i], stage_.spec.ropes[*spec.rope].n_rot);
}

void LatentMixer::store(const AttentionSpec& spec, std::size_t i, std::size_t head, const float* key,
                        const float* value) const {
  const RowPlace& place = stage_.places[i];
  const std::size_t page = place.position / kernels::kKvPage;
  const std::size_t in_page = place.position % kernels::kKvPage;
  const kernels::KvType type = place.sequence->kv_type();
  stage_.kernels.store_key(key, spec.key_length, type, in_page, place.sequence->keys(spec.kv_slot, head, page));
  stage_.kernels.store_value(value, spec.value_length, type, in_page, place.sequence->values(spec.kv_slot, head, page));
}

/// Plain attention: a key of each head is its own part and the shared rotated one.
void LatentMixer::place_heads(const AttentionSpec& spec, const LatentSpec& latent) {
  q_ = full_;
  key_ = key_buffer_.shape(full_.n, spec.key_length);
  for_rows(stage_.pool, full_.n, [&](std::size_t i) {
    rotate(spec, i, kv_[i] + latent.rank);
    std::copy_n(kv_[i] + latent.rank, latent.n_rot, key_[i] + latent.nope);
    for (std::size_t head = 0; head < spec.heads; ++head) {
      rotate(spec, i, q_[i] + head * spec.key_length + latent.nope);
      const float* both = both_[i] + head * (latent.nope + latent.value_length);
      std::copy_n(both, latent.nope, key_[i]);
      store(spec, i, head, key_[i], both + latent.nope);
    }
    stage_.kernels.scale(q_[i], spec.scale, q_.cols);
  });
}

/// Queries in the latent's space, behind them their rotated part; the latent is stored as key and value.
void LatentMixer::place_latent(const AttentionSpec& spec, const LatentSpec& latent) {
  const std::size_t n = full_.n;
  const std::size_t head_length = latent.nope + latent.n_rot;
  q_ = q_buffer_.shape(n, spec.heads * spec.key_length);
  key_ = key_buffer_.shape(n, spec.key_length);
  const Rows heads =
      heads_buffer_.shape(n * spec.heads, latent.nope);  // head after head, so that each is a run of rows
  const Matrix any = latent.k_b[0];
  head_rows_.begin(heads, {&any});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    for (std::size_t head = 0; head < spec.heads; ++head) {
      std::copy_n(full_[i] + head * head_length, latent.nope, heads[head * n + i]);
      head_rows_.prepare_row(head * n + i);
    }
  });
  for (std::size_t head = 0; head < spec.heads; ++head)
    stage_.products.add_part(latent.k_b[head], head_rows_, head * n, n, q_.data + head * spec.key_length, q_.stride);
  stage_.products.run("q, k, v");
  for_rows(stage_.pool, n, [&](std::size_t i) {
    for (std::size_t head = 0; head < spec.heads; ++head) {
      float* rotated = q_[i] + head * spec.key_length + latent.rank;
      std::copy_n(full_[i] + head * head_length + latent.nope, latent.n_rot, rotated);
      rotate(spec, i, rotated);
    }
    stage_.kernels.scale(q_[i], spec.scale, q_.cols);
    std::copy_n(latent_[i], latent.rank, key_[i]);
    std::copy_n(kv_[i] + latent.rank, latent.n_rot, key_[i] + latent.rank);
    rotate(spec, i, key_[i] + latent.rank);
    store(spec, i, 0, key_[i], latent_[i]);
  });
}

/// From sums of latents to the values of each head.
Rows LatentMixer::expand(const AttentionSpec& spec, const LatentSpec& latent, const Rows& mixed) {
  const std::size_t n = mixed.n;
  const Rows heads = heads_buffer_.shape(n * spec.heads, latent.rank);
  const Rows values = values_buffer_.shape(n, spec.heads * latent.value_length);
  const Matrix any = latent.v_b[0];
  head_rows_.begin(heads, {&any});
  for_rows(stage_.pool, n, [&](std::size_t i) {
    for (std::size_t head = 0; head < spec.heads; ++head) {
      std::copy_n(mixed[i] + head * latent.rank, latent.rank, heads[head * n + i]);
      head_rows_.prepare_row(head * n + i);
    }
  });
  for (std::size_t head = 0; head < spec.heads; ++head)
    stage_.products.add_part(latent.v_b[head], head_rows_, head * n, n, values.data + head * latent.value_length,
                             values.stride);
  stage_.products.run("q, k, v");
  return values;
}

}  // namespace hk::models
