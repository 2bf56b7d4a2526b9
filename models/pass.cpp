// One forward pass over a chunk of rows (see pass.h).
#include "models/pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/runtime/profile.h"

namespace hk::models {

Pass::Pass(const ModelSpec& spec, const kernels::KernelTable& kernels, engine::ThreadPool& pool)
    : spec_(spec), kernels_(kernels), pool_(pool), products_(kernels, pool), attention_(spec, kernels, pool) {
  angles_.resize(spec.ropes.size());
}

std::size_t Pass::bytes() const {
  std::size_t bytes = products_.bytes() + attention_.bytes();
  for (const RowBuffer* buffer : {&x_buffer_, &normed_buffer_, &normed2_buffer_, &q_buffer_, &k_buffer_, &v_buffer_,
                                  &mixed_buffer_, &branch_buffer_, &branch2_buffer_, &gate_buffer_, &up_buffer_})
    bytes += buffer->bytes();
  for (const Angles& angles : angles_) bytes += angles.cos_buffer.bytes() + angles.sin_buffer.bytes();
  return bytes;
}

bool Pass::run(std::span<const Segment> segments, std::span<const engine::TokenId> tokens,
               std::span<const std::uint32_t> wanted, float* logits, const std::function<bool()>& cancelled) {
  const std::size_t n = tokens.size();
  {
    const engine::StageTimer timer("embedding");
    place_rows(segments, n);
    fill_angles(n);
    embed(tokens);
  }
  for (const LayerSpec& layer : spec_.layers) {
    if (cancelled && cancelled()) return false;
    if (!run_layer(layer, segments, cancelled)) return false;
  }
  if (!wanted.empty()) output(wanted, logits);
  return true;
}

void Pass::place_rows(std::span<const Segment> segments, std::size_t n) {
  places_.resize(n);
  for (const Segment& segment : segments) {
    for (std::size_t r = 0; r < segment.rows; ++r)
      places_[segment.first_row + r] = {segment.sequence, segment.position + r};
  }
}

/// cos and sin of every row's position, once for all layers. In double: a large position times a frequency needs the
/// digits.
void Pass::fill_angles(std::size_t n) {
  for (std::size_t t = 0; t < angles_.size(); ++t) {
    const RopeTable& table = spec_.ropes[t];
    Angles& angles = angles_[t];
    angles.cos = angles.cos_buffer.shape(n, table.n_rot / 2);
    angles.sin = angles.sin_buffer.shape(n, table.n_rot / 2);
    for_rows(pool_, n, [&](std::size_t i) {
      const bool use_long = !table.long_frequencies.empty() && places_[i].sequence->capacity() > table.original_context;
      const std::vector<double>& frequencies = use_long ? table.long_frequencies : table.frequencies;
      for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
        const double angle = static_cast<double>(places_[i].position) * frequencies[pair];
        angles.cos[i][pair] = static_cast<float>(std::cos(angle)) * table.magnitude;
        angles.sin[i][pair] = static_cast<float>(std::sin(angle)) * table.magnitude;
      }
    });
  }
}

void Pass::embed(std::span<const engine::TokenId> tokens) {
  x_ = x_buffer_.shape(tokens.size(), spec_.width);
  const Rows positions = spec_.position_embedding ? normed_buffer_.shape(tokens.size(), spec_.width) : Rows{};
  for_rows(pool_, tokens.size(), [&](std::size_t i) {
    const LookupTable& table = spec_.token_embedding;
    table.decode(table.data + static_cast<std::size_t>(tokens[i]) * table.row_bytes, x_[i], spec_.width);
    if (spec_.embedding_scale != 1.0F) kernels_.scale(x_[i], spec_.embedding_scale, spec_.width);
    if (spec_.position_embedding) {
      const LookupTable& learned = spec_.position_embedding;
      learned.decode(learned.data + places_[i].position * learned.row_bytes, positions[i], spec_.width);
      kernels_.add(x_[i], positions[i], spec_.width);
    }
    if (spec_.embedding_norm) norm(spec_.embedding_norm, x_[i], spec_.width, x_[i]);
  });
}

bool Pass::run_layer(const LayerSpec& layer, std::span<const Segment> segments,
                     const std::function<bool()>& cancelled) {
  const AttentionSpec& a = layer.attention;
  const FeedForwardSpec& f = layer.feed_forward;
  Rows mixer_input = x_;
  Rows mixed;
  if (layer.mixer == MixerKind::kAttention) {
    mixer_input = normalise(layer.mixer_norm, x_, normed_buffer_, {&a.q, &a.k, &a.v});
    mixed = attention(a, mixer_input, segments);
    // A parallel feed-forward still needs the layer's input, so the sum waits.
    if (!layer.parallel) add_branch(layer.mixer_post_norm, layer.residual_scale, mixed);
  }
  if (cancelled && cancelled()) return false;
  if (layer.feed_forward_kind == FeedForwardKind::kDense) {
    const bool shares_norm = layer.parallel && !layer.feed_forward_norm;
    const Rows input =
        normalise(layer.feed_forward_norm, shares_norm ? mixer_input : x_, normed2_buffer_, {&f.gate, &f.up});
    const Rows branch = feed_forward(f, input);
    if (layer.parallel && layer.mixer != MixerKind::kNone)
      add_branch(layer.mixer_post_norm, layer.residual_scale, mixed);
    add_branch(layer.feed_forward_post_norm, layer.residual_scale, branch);
  }
  return true;
}

Rows Pass::normalise(const NormSpec& spec, const Rows& x, RowBuffer& into,
                     std::initializer_list<const Matrix*> matrices) {
  const engine::StageTimer timer("norm");
  const Rows out = spec ? into.shape(x.n, x.cols) : x;
  products_.begin(out, matrices);
  for_rows(pool_, x.n, [&](std::size_t i) {
    if (spec) norm(spec, x[i], x.cols, out[i]);
    products_.prepare_row(i);
  });
  return out;
}

/// From prepared input rows to the branch that joins the residual stream.
Rows Pass::attention(const AttentionSpec& spec, const Rows& input, std::span<const Segment> segments) {
  q_ = q_buffer_.shape(input.n, spec.heads * spec.key_length);
  k_ = k_buffer_.shape(input.n, spec.kv_heads * spec.key_length);
  v_ = v_buffer_.shape(input.n, spec.kv_heads * spec.value_length);
  products_.run("q, k, v",
                {{&spec.q, q_.data, q_.stride}, {&spec.k, k_.data, k_.stride}, {&spec.v, v_.data, v_.stride}});
  engine::StageTimer timer("rotation, cache");
  for_rows(pool_, input.n, [&](std::size_t i) { place_heads(spec, i); });

  const Rows mixed = mixed_buffer_.shape(input.n, spec.heads * spec.value_length);
  timer.next("attention", spec.window != 0 ? "window" : "");
  if (timer.listening()) timer.add(attention_.work(spec, segments));
  attention_.run(spec, segments, q_, mixed);
  timer.next("quantize");
  products_.begin(mixed, {&spec.output});
  for_rows(pool_, mixed.n, [&](std::size_t i) {
    if (spec.sub_norm) norm(spec.sub_norm, mixed[i], mixed.cols, mixed[i]);
    products_.prepare_row(i);
  });
  timer.stop();
  const Rows branch = branch_buffer_.shape(input.n, spec_.width);
  products_.run("attention output", {{&spec.output, branch.data, branch.stride}});
  return branch;
}

/// Row i's q, k and v from projection to use: clamped, normalised, rotated, scaled; k and v go into the cache.
void Pass::place_heads(const AttentionSpec& spec, std::size_t i) {
  const RowPlace& place = places_[i];
  if (spec.clamp != 0) {
    for (const Rows& rows : {q_, k_, v_}) {
      for (std::size_t c = 0; c < rows.cols; ++c) rows[i][c] = std::clamp(rows[i][c], -spec.clamp, spec.clamp);
    }
  }
  if (!spec.head_norm_after_rope) {
    norm_heads(spec, spec.q_norm, q_[i], spec.heads, spec.key_length);
    norm_heads(spec, spec.k_norm, k_[i], spec.kv_heads, spec.key_length);
  }
  rotate(spec, i, q_[i], spec.heads);
  rotate(spec, i, k_[i], spec.kv_heads);
  if (spec.head_norm_after_rope) {
    norm_heads(spec, spec.q_norm, q_[i], spec.heads, spec.key_length);
    norm_heads(spec, spec.k_norm, k_[i], spec.kv_heads, spec.key_length);
  }
  float scale = spec.scale;
  if (spec.temperature_scale != 0) {
    const double step = std::floor(
        (static_cast<double>(place.position) + static_cast<double>(spec.temperature_offset)) / spec.temperature_length);
    scale *= static_cast<float>(1 + static_cast<double>(spec.temperature_scale) * std::log(1 + step));
  }
  kernels_.scale(q_[i], scale, q_.cols);
  const std::size_t page = place.position / kernels::kKvPage;
  const std::size_t in_page = place.position % kernels::kKvPage;
  const kernels::KvType type = place.sequence->kv_type();
  for (std::size_t head = 0; head < spec.kv_heads; ++head) {
    float* value = v_[i] + head * spec.value_length;
    if (spec.v_norm) norm(spec.v_norm, value, spec.value_length, value);
    kernels_.store_key(k_[i] + head * spec.key_length, spec.key_length, type, in_page,
                       place.sequence->keys(spec.kv_slot, head, page));
    kernels_.store_value(value, spec.value_length, type, in_page, place.sequence->values(spec.kv_slot, head, page));
  }
}

void Pass::norm_heads(const AttentionSpec& spec, const NormSpec& head_norm, float* row, std::size_t heads,
                      std::size_t size) const {
  if (!head_norm) return;
  if (spec.head_norm_scope == HeadNormScope::kWholeRow) {
    norm(head_norm, row, heads * size, row);
    return;
  }
  NormSpec own = head_norm;
  for (std::size_t head = 0; head < heads; ++head) {
    norm(own, row + head * size, size, row + head * size);
    if (spec.head_norm_scope != HeadNormScope::kOwnWeight) continue;
    if (own.weight != nullptr) own.weight += size;
    if (own.bias != nullptr) own.bias += size;
  }
}

void Pass::rotate(const AttentionSpec& spec, std::size_t i, float* row, std::size_t heads) const {
  if (!spec.rope) return;
  const Angles& angles = angles_[*spec.rope];
  const std::size_t n_rot = spec_.ropes[*spec.rope].n_rot;
  const auto turn = spec.rope_style == RopeStyle::kAdjacent ? kernels_.rope_adjacent : kernels_.rope_halves;
  for (std::size_t head = 0; head < heads; ++head)
    turn(row + head * spec.key_length, angles.cos[i], angles.sin[i], n_rot);
}

Rows Pass::feed_forward(const FeedForwardSpec& spec, const Rows& input) {
  const Rows up = up_buffer_.shape(input.n, spec.up.rows);
  const Rows gate = spec.gate ? gate_buffer_.shape(input.n, spec.gate.rows) : up;
  products_.run("gate, up", {{&spec.gate, gate.data, gate.stride}, {&spec.up, up.data, up.stride}});
  engine::StageTimer timer("activation");
  products_.begin(gate, {&spec.down});
  for_rows(pool_, input.n, [&](std::size_t i) {
    activate(spec, gate[i], spec.gate ? up[i] : nullptr, up.cols);
    if (spec.sub_norm) norm(spec.sub_norm, gate[i], up.cols, gate[i]);
    products_.prepare_row(i);
  });
  timer.stop();
  const Rows branch = branch2_buffer_.shape(input.n, spec_.width);
  products_.run("down", {{&spec.down, branch.data, branch.stride}});
  return branch;
}

/// gate = act(gate) * up, or act(gate) without up.
void Pass::activate(const FeedForwardSpec& spec, float* gate, const float* up, std::size_t n) const {
  switch (spec.activation) {
    case Activation::kSilu:
      kernels_.silu_mul(gate, up, n, gate);
      break;
    case Activation::kGelu:
      kernels_.gelu_mul(gate, up, n, gate);
      break;
    case Activation::kRelu2:
      kernels_.relu2_mul(gate, up, n, gate);
      break;
    case Activation::kXielu:
      for (std::size_t i = 0; i < n; ++i) {
        const float x = gate[i];
        const float bent =
            x > 0 ? spec.xielu.positive * x * x : spec.xielu.negative * (std::expm1(std::min(x, spec.xielu.limit)) - x);
        gate[i] = (bent + spec.xielu.linear * x) * (up == nullptr ? 1.0F : up[i]);
      }
      break;
  }
}

void Pass::add_branch(const NormSpec& post_norm, float scale, const Rows& branch) {
  const engine::StageTimer timer("residual");
  for_rows(pool_, branch.n, [&](std::size_t i) {
    if (post_norm) norm(post_norm, branch[i], branch.cols, branch[i]);
    if (scale == 1.0F) {
      kernels_.add(x_[i], branch[i], branch.cols);
    } else {
      kernels_.add_scaled(x_[i], branch[i], scale, branch.cols);
    }
  });
}

void Pass::norm(const NormSpec& spec, const float* x, std::size_t n, float* out) const {
  if (spec.kind == NormKind::kLayer) {
    kernels_.layer_norm(x, spec.weight, spec.bias, spec.epsilon, n, out);
  } else {
    kernels_.rms_norm(x, spec.weight, spec.epsilon, n, out);
  }
}

void Pass::output(std::span<const std::uint32_t> wanted, float* logits) {
  engine::StageTimer timer("norm");
  const Rows rows = normed_buffer_.shape(wanted.size(), spec_.width);
  products_.begin(rows, {&spec_.output});
  for_rows(pool_, wanted.size(), [&](std::size_t i) {
    if (spec_.output_norm) {
      norm(spec_.output_norm, x_[wanted[i]], spec_.width, rows[i]);
    } else {
      std::memcpy(rows[i], x_[wanted[i]], spec_.width * sizeof(float));
    }
    products_.prepare_row(i);
  });
  timer.stop();
  products_.run("output", {{&spec_.output, logits, spec_.vocab_size, spec_.logit_softcap}});
}

}  // namespace hk::models
