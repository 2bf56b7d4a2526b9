// RWKV's channel mixing (see channel_mix.h).
#include "models/recurrent/channel_mix.h"

#include "models/recurrent/parts.h"

namespace hk::models {

std::size_t ChannelMixer::bytes() const {
  std::size_t bytes = key_rows_.bytes() + receptance_rows_.bytes() + inner_rows_.bytes();
  for (const RowBuffer* buffer : {&key_buffer_, &receptance_buffer_, &inner_buffer_, &gate_buffer_, &out_buffer_})
    bytes += buffer->bytes();
  return bytes;
}

Rows ChannelMixer::run(const ChannelMixSpec& spec, const Rows& input) {
  const Rows key = key_buffer_.shape(input.n, input.cols);
  const Rows receptance = receptance_buffer_.shape(input.n, input.cols);
  key_rows_.begin(key, {&spec.key});
  receptance_rows_.begin(receptance, {&spec.receptance});
  shift_.begin(stage_, input, spec.shift);
  for_rows(stage_.pool, input.n, [&](std::size_t i) {
    shift_.mix(input, i, spec.lerp_key, key[i]);
    key_rows_.prepare_row(i);
    if (!spec.receptance) return;
    shift_.mix(input, i, spec.lerp_receptance, receptance[i]);
    receptance_rows_.prepare_row(i);
  });
  shift_.end(stage_, input, spec.shift);
  const Rows inner = inner_buffer_.shape(input.n, spec.key.rows);
  const Rows gate = gate_buffer_.shape(input.n, input.cols);
  stage_.products.add(spec.key, key_rows_, inner);
  stage_.products.add(spec.receptance, receptance_rows_, gate);
  stage_.products.run("channel mix key");
  inner_rows_.begin(inner, {&spec.value});
  for_rows(stage_.pool, input.n, [&](std::size_t i) {
    stage_.kernels.relu2_mul(inner[i], nullptr, inner.cols, inner[i]);
    inner_rows_.prepare_row(i);
  });
  const Rows out = out_buffer_.shape(input.n, input.cols);
  stage_.products.add(spec.value, inner_rows_, out);
  stage_.products.run("channel mix value");
  if (spec.receptance) {
    for_rows(stage_.pool, input.n, [&](std::size_t i) {
      for (std::size_t c = 0; c < out.cols; ++c) out[i][c] *= sigmoid(gate[i][c]);
    });
  }
  return out;
}

}  // namespace hk::models
