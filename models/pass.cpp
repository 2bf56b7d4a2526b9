// One forward pass over a chunk of rows (see pass.h).
#include "models/pass.h"

#include <algorithm>
#include <cmath>

#include "engine/runtime/profile.h"

namespace hk::models {

namespace {

std::string_view name_of(MixerKind kind) {
  switch (kind) {
    case MixerKind::kNone:
      break;
    case MixerKind::kAttention:
      return "attention half";
    case MixerKind::kLatentAttention:
      return "latent attention half";
    case MixerKind::kShortConvolution:
      return "convolution half";
    case MixerKind::kDelta:
      return "delta rule half";
    case MixerKind::kScan:
      return "scan half";
    case MixerKind::kAttentionAndScan:
      return "attention and scan half";
    case MixerKind::kTimeMix:
      return "time mix half";
    case MixerKind::kLinear:
      return "linear half";
  }
  return "no mixer";
}

std::string_view name_of(FeedForwardKind kind) {
  switch (kind) {
    case FeedForwardKind::kNone:
      break;
    case FeedForwardKind::kDense:
      return "feed-forward half";
    case FeedForwardKind::kExperts:
      return "experts half";
    case FeedForwardKind::kDenseAndExperts:
      return "feed-forward and experts half";
    case FeedForwardKind::kChannelMix:
      return "channel mix half";
  }
  return "no feed-forward";
}

/// Moves the picked rows, whose indices rise, to the front.
void pick_rows(Rows& rows, std::span<const std::uint32_t> picked) {
  for (std::size_t i = 0; i < picked.size(); ++i) {
    if (picked[i] != i) std::copy_n(rows[picked[i]], rows.cols, rows[i]);
  }
  rows.n = picked.size();
}

}  // namespace

Pass::Pass(const ModelSpec& spec, const kernels::KernelTable& kernels, engine::ThreadPool& pool)
    : spec_(spec),
      stage_(spec, kernels, pool),
      attend_(spec, kernels, pool),
      attention_(stage_, attend_),
      latent_(stage_, attend_),
      short_convolution_(stage_),
      delta_(stage_),
      scan_(stage_),
      time_mix_(stage_),
      channel_mix_(stage_),
      per_layer_input_(stage_),
      streams_(stage_),
      feed_forward_(stage_),
      experts_(stage_),
      mixer_rows_(kernels),
      feed_forward_rows_(kernels),
      low_rows_(kernels) {}

std::size_t Pass::bytes() const {
  std::size_t bytes = stage_.products.bytes() + attend_.bytes() + attention_.bytes() + latent_.bytes() +
                      short_convolution_.bytes() + delta_.bytes() + scan_.bytes() + time_mix_.bytes() +
                      channel_mix_.bytes() + per_layer_input_.bytes() + streams_.bytes() + low_rows_.bytes() +
                      feed_forward_.bytes() + experts_.bytes() + mixer_rows_.bytes() + feed_forward_rows_.bytes();
  for (const RowBuffer* buffer : {&x_buffer_, &layer_input_buffer_, &normed_buffer_, &low_buffer_, &low_out_buffer_})
    bytes += buffer->bytes();
  for (const Angles& angles : stage_.angles) bytes += angles.cos_buffer.bytes() + angles.sin_buffer.bytes();
  return bytes;
}

bool Pass::run(std::span<const Segment> segments, std::span<const engine::TokenId> tokens,
               std::span<const std::uint32_t> wanted, float* logits, const PassControl& control) {
  const std::size_t n = tokens.size();
  const std::size_t layers = spec_.layers.size();
  const engine::SpanTimer span("pass", n);
  // A stage that is left early leaves nonsense behind, which nobody reads: the pass ends at the next look.
  const engine::ThreadPool::Cancellation cancellation(stage_.pool, control.cancelled);
  const auto stopped = [&] { return cancellation.stopped() || (control.cancelled && control.cancelled()); };
  rows_dropped_ = false;
  {
    const engine::StageTimer timer("embedding");
    place_rows(segments, n);
    fill_angles(n);
    embed(tokens);
  }
  if (spec_.per_layer_input.width != 0) per_layer_input_.make(tokens, x_);
  if (spec_.streams.count != 0) streams_.start(x_);
  for (std::size_t index = 0; index < layers; ++index) {
    if (stopped()) return false;
    if (control.progress && index != 0) control.progress(control.done + n * index / layers, control.total);
    const engine::SpanTimer layer_span("layer", index);
    if (spec_.streams.count != 0) streams_.predict(spec_.layers[index].streams, x_);
    run_layer(index, wanted);
    end_layer(spec_.layers[index], index);
  }
  if (spec_.streams.count != 0) streams_.finish(x_);
  if (!wanted.empty()) output(wanted, logits);
  return !cancellation.stopped();
}

void Pass::place_rows(std::span<const Segment> segments, std::size_t n) {
  stage_.segments = segments;
  stage_.places.resize(n);
  for (const Segment& segment : segments) {
    for (std::size_t r = 0; r < segment.rows; ++r)
      stage_.places[segment.first_row + r] = {segment.sequence, segment.position + r};
  }
}

/// cos and sin of every row's position, once for all layers. In double: a large position times a frequency needs the
/// digits.
void Pass::fill_angles(std::size_t n) {
  for (std::size_t t = 0; t < stage_.angles.size(); ++t) {
    const RopeTable& table = spec_.ropes[t];
    Angles& angles = stage_.angles[t];
    angles.cos = angles.cos_buffer.shape(n, table.n_rot / 2);
    angles.sin = angles.sin_buffer.shape(n, table.n_rot / 2);
    for_rows(stage_.pool, n, [&](std::size_t i) {
      const RowPlace& place = stage_.places[i];
      const bool use_long = !table.long_frequencies.empty() && place.sequence->capacity() > table.original_context;
      const std::vector<double>& frequencies = use_long ? table.long_frequencies : table.frequencies;
      for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
        const double angle = static_cast<double>(place.position) * frequencies[pair];
        angles.cos[i][pair] = static_cast<float>(std::cos(angle)) * table.magnitude;
        angles.sin[i][pair] = static_cast<float>(std::sin(angle)) * table.magnitude;
      }
    });
  }
}

void Pass::embed(std::span<const engine::TokenId> tokens) {
  x_ = x_buffer_.shape(tokens.size(), spec_.width);
  const Rows positions = spec_.position_embedding ? normed_buffer_.shape(tokens.size(), spec_.width) : Rows{};
  for_rows(stage_.pool, tokens.size(), [&](std::size_t i) {
    const LookupTable& table = spec_.token_embedding;
    table.decode(table.data + static_cast<std::size_t>(tokens[i]) * table.row_bytes, x_[i], spec_.width);
    if (spec_.embedding_scale != 1.0F) stage_.kernels.scale(x_[i], spec_.embedding_scale, spec_.width);
    if (spec_.position_embedding) {
      const LookupTable& learned = spec_.position_embedding;
      learned.decode(learned.data + stage_.places[i].position * learned.row_bytes, positions[i], spec_.width);
      stage_.kernels.add(x_[i], positions[i], spec_.width);
    }
    if (spec_.embedding_norm) stage_.norm(spec_.embedding_norm, x_[i], spec_.width, x_[i]);
  });
}

void Pass::run_layer(std::size_t index, std::span<const std::uint32_t> wanted) {
  const LayerSpec& layer = spec_.layers[index];
  const bool keeps_input =
      layer.feed_forward_kind != FeedForwardKind::kNone &&
      (layer.experts.input == LayerInput::kLayer || layer.experts.router.input == LayerInput::kLayer);
  if (keeps_input) {
    layer_input_ = layer_input_buffer_.shape(x_.n, x_.cols);
    for_rows(stage_.pool, x_.n, [&](std::size_t i) { std::copy_n(x_[i], x_.cols, layer_input_[i]); });
  }
  Rows mixed;
  if (layer.mixer != MixerKind::kNone) {
    const engine::SpanTimer span(name_of(layer.mixer), index, true);
    mixed = mix(layer);
    // A parallel feed-forward still needs the layer's input, so the sum waits.
    if (!layer.parallel) add_branch(layer.mixer_post_norm, layer.residual_scale, mixed);
    if (layer.low_branch.down) add_low_branch(layer.low_branch);
  }
  if (layer.feed_forward_kind == FeedForwardKind::kNone) return;
  if (wanted.size() < x_.n && drops_rows(index)) keep_rows(layer, wanted, mixed);
  if (x_.n == 0) return;
  const engine::SpanTimer span(name_of(layer.feed_forward_kind), index, true);
  const Rows branch = feed_forward(layer);
  if (layer.parallel && layer.mixer != MixerKind::kNone) add_branch(layer.mixer_post_norm, layer.residual_scale, mixed);
  add_branch(layer.feed_forward_post_norm, layer.residual_scale, branch);
}

/// Behind the last layer's mixer only the rows count whose logits are wanted, unless something else reads the others.
bool Pass::drops_rows(std::size_t index) const {
  const LayerSpec& layer = spec_.layers[index];
  return index + 1 == spec_.layers.size() && spec_.streams.count == 0 && !layer.per_layer.gate &&
         layer.feed_forward_kind != FeedForwardKind::kChannelMix;
}

/// Whatever the rest of the layer reads.
void Pass::keep_rows(const LayerSpec& layer, std::span<const std::uint32_t> wanted, Rows& mixed) {
  const engine::StageTimer timer("residual");
  Rows normed = mixer_rows_.rows();
  if (layer.parallel && layer.mixer != MixerKind::kNone) {
    pick_rows(mixed, wanted);
    if (normed.data != x_.data) pick_rows(normed, wanted);
  }
  if (layer_input_.n == x_.n && layer_input_.data != nullptr) pick_rows(layer_input_, wanted);
  pick_rows(x_, wanted);
  rows_dropped_ = true;
}

void Pass::normalise(const NormSpec& spec, const Rows& x, RowBuffer& into, PreparedRows& prepared, Matrices matrices) {
  const engine::StageTimer timer("norm");
  const Rows out = spec ? into.shape(x.n, x.cols) : x;
  prepared.begin(out, matrices);
  for_rows(stage_.pool, x.n, [&](std::size_t i) {
    if (spec) stage_.norm(spec, x[i], x.cols, out[i]);
    prepared.prepare_row(i);
  });
}

/// The branch of the layer's mixer, which leaves its normalised input in mixer_rows_.
Rows Pass::mix(const LayerSpec& layer) {
  const AttentionSpec& a = layer.attention;
  const auto prepare = [&](Matrices matrices) {
    normalise(layer.mixer_norm, x_, normed_buffer_, mixer_rows_, matrices);
  };
  switch (layer.mixer) {
    case MixerKind::kNone:
      break;
    case MixerKind::kAttention:
      prepare({&a.q, &a.k, &a.v, &a.gate, &layer.low_branch.down});
      return attention_.run(a, mixer_rows_);
    case MixerKind::kLatentAttention: {
      const LatentSpec& l = layer.latent;
      prepare({l.q_a ? &l.q_a : &l.q, &l.kv_a});
      return latent_.run(a, l, mixer_rows_);
    }
    case MixerKind::kShortConvolution:
      prepare({&layer.short_convolution.in});
      return short_convolution_.run(layer.short_convolution, mixer_rows_);
    case MixerKind::kDelta: {
      const DeltaSpec& d = layer.delta;
      prepare({&d.qkv, &d.q, &d.k, &d.v, &d.gate, &d.beta_alpha, &d.beta, &d.alpha, &d.channel_alpha.down,
               &d.low_gate.down});
      return delta_.run(d, mixer_rows_);
    }
    case MixerKind::kScan:
      prepare({&layer.scan.in});
      return scan_.run(layer.scan, mixer_rows_);
    case MixerKind::kTimeMix:
      prepare({});
      return time_mix_.run(layer.time_mix, mixer_rows_.rows());
    case MixerKind::kLinear: {
      prepare({&a.output});
      const Rows out = low_out_buffer_.shape(x_.n, x_.cols);
      stage_.products.add(a.output, mixer_rows_, out);
      stage_.products.run("linear");
      return out;
    }
    case MixerKind::kAttentionAndScan: {
      prepare({&a.q, &a.k, &a.v, &a.gate, &layer.scan.in});
      const Rows attended = attention_.run(a, mixer_rows_);
      const Rows scanned = scan_.run(layer.scan, mixer_rows_);
      for_rows(stage_.pool, attended.n,
               [&](std::size_t i) { stage_.kernels.add(attended[i], scanned[i], attended.cols); });
      return attended;
    }
  }
  return {};
}

Rows Pass::feed_forward(const LayerSpec& layer) {
  const bool shares_norm = layer.parallel && !layer.feed_forward_norm;
  Rows x = shares_norm ? mixer_rows_.rows() : x_;
  x.n = x_.n;
  switch (layer.feed_forward_kind) {
    case FeedForwardKind::kNone:
      break;
    case FeedForwardKind::kDense: {
      const FeedForwardSpec& f = layer.feed_forward;
      normalise(layer.feed_forward_norm, x, normed_buffer_, feed_forward_rows_, {&f.gate, &f.up});
      return feed_forward_.run(f, feed_forward_rows_);
    }
    case FeedForwardKind::kExperts:
      return experts(layer, layer.feed_forward_norm, x);
    case FeedForwardKind::kChannelMix:
      normalise(layer.feed_forward_norm, x, normed_buffer_, feed_forward_rows_, {});
      return channel_mix_.run(layer.channel_mix, feed_forward_rows_.rows());
    case FeedForwardKind::kDenseAndExperts:
      return dense_and_experts(layer);
  }
  return {};
}

Rows Pass::experts(const LayerSpec& layer, const NormSpec& norm, const Rows& x) {
  const ExpertsSpec& e = layer.experts;
  const Matrix gate = e.gate ? e.gate[0] : Matrix{};
  const Matrix up = e.up[0];
  normalise(norm, x, normed_buffer_, feed_forward_rows_,
            {&e.router.logits, &gate, &up, &e.shared.gate, &e.shared.up, &e.shared_gate});
  switch (e.router.input) {
    case LayerInput::kNormed:
      break;
    case LayerInput::kStream:
      return experts_.run(e, feed_forward_rows_, &x_);
    case LayerInput::kLayer:
      return experts_.run(e, feed_forward_rows_, &layer_input_);
  }
  return experts_.run(e, feed_forward_rows_, nullptr);
}

Rows Pass::dense_and_experts(const LayerSpec& layer) {
  const FeedForwardSpec& f = layer.feed_forward;
  normalise(layer.feed_forward_norm, x_, normed_buffer_, feed_forward_rows_, {&f.gate, &f.up});
  const Rows dense = feed_forward_.run(f, feed_forward_rows_);
  const ExpertsSpec& e = layer.experts;
  const Rows mixture = experts(layer, e.norm, e.input == LayerInput::kLayer ? layer_input_ : x_);
  for_rows(stage_.pool, dense.n, [&](std::size_t i) {
    if (e.dense_post_norm) stage_.norm(e.dense_post_norm, dense[i], dense.cols, dense[i]);
    if (e.post_norm) stage_.norm(e.post_norm, mixture[i], mixture.cols, mixture[i]);
    stage_.kernels.add(dense[i], mixture[i], dense.cols);
  });
  return dense;
}

/// Beside the mixer, whose branch has joined x and whose input is still there.
void Pass::add_low_branch(const LowBranchSpec& spec) {
  const Rows low = low_buffer_.shape(x_.n, spec.down.rows);
  stage_.products.add(spec.down, mixer_rows_, low);
  stage_.products.run("low branch");
  low_rows_.begin(low, {&spec.up});
  for_rows(stage_.pool, x_.n, [&](std::size_t i) { low_rows_.prepare_row(i); });
  const Rows out = low_out_buffer_.shape(x_.n, x_.cols);
  stage_.products.add(spec.up, low_rows_, out);
  stage_.products.run("low branch");
  const Rows& input = mixer_rows_.rows();
  for_rows(stage_.pool, x_.n, [&](std::size_t i) {
    stage_.norm(spec.norm, out[i], out.cols, out[i]);
    stage_.kernels.add(out[i], input[i], out.cols);
    stage_.kernels.add(x_[i], out[i], out.cols);
    stage_.kernels.scale(x_[i], std::sqrt(0.5F), out.cols);
  });
}

void Pass::end_layer(const LayerSpec& layer, std::size_t index) {
  if (spec_.streams.count != 0) {
    streams_.correct(layer.streams, x_);
    streams_.add_to_others(per_layer_input_.use(layer.per_layer, index, x_));
    return;
  }
  if (layer.per_layer.gate) add_branch({}, 1, per_layer_input_.use(layer.per_layer, index, x_));
  if (layer.output_scale == 1.0F) return;
  for_rows(stage_.pool, x_.n, [&](std::size_t i) { stage_.kernels.scale(x_[i], layer.output_scale, x_.cols); });
}

void Pass::add_branch(const NormSpec& post_norm, float scale, const Rows& branch) {
  const engine::StageTimer timer("residual");
  for_rows(stage_.pool, branch.n, [&](std::size_t i) {
    if (post_norm) stage_.norm(post_norm, branch[i], branch.cols, branch[i]);
    if (scale == 1.0F) {
      stage_.kernels.add(x_[i], branch[i], branch.cols);
    } else {
      stage_.kernels.add_scaled(x_[i], branch[i], scale, branch.cols);
    }
  });
}

void Pass::output(std::span<const std::uint32_t> wanted, float* logits) {
  engine::StageTimer timer("norm");
  const Rows rows = normed_buffer_.shape(wanted.size(), spec_.width);
  mixer_rows_.begin(rows, {&spec_.output});
  for_rows(stage_.pool, wanted.size(), [&](std::size_t i) {
    const float* x = x_[rows_dropped_ ? i : wanted[i]];
    if (spec_.output_norm) {
      stage_.norm(spec_.output_norm, x, spec_.width, rows[i]);
    } else {
      std::copy_n(x, spec_.width, rows[i]);
    }
    mixer_rows_.prepare_row(i);
  });
  timer.stop();
  const Rows out{logits, spec_.vocab_size, wanted.size(), spec_.vocab_size};
  stage_.products.add(spec_.output, mixer_rows_, out, spec_.logit_softcap);
  stage_.products.run("output");
}

}  // namespace hk::models
