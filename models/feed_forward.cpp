// The dense feed-forward of a layer (see feed_forward.h).
#include "models/feed_forward.h"

#include "models/activate.h"

namespace hk::models {

Rows FeedForward::run(const FeedForwardSpec& spec, const PreparedRows& input) {
  add_up(spec, input);
  stage_.products.run("gate, up");
  const Rows out = add_down(spec);
  stage_.products.run("down");
  return out;
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
