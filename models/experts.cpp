// A mixture of experts (see experts.h).
#include "models/experts.h"

#include <algorithm>
#include <cmath>

#include "models/activate.h"

namespace hk::models {

Experts::Experts(Stage& stage)
    : stage_(stage), shared_(stage), router_rows_(stage.kernels), picked_(stage.kernels), inner_(stage.kernels) {
  std::size_t experts = 0;
  for (const LayerSpec& layer : stage.spec.layers) experts = std::max(experts, layer.experts.up.count);
  if (experts == 0) return;
  first_of_.reserve(experts + 1);
  next_of_.reserve(experts);
  stage.products.reserve(2 * experts + 4);
}

std::size_t Experts::bytes() const {
  std::size_t bytes = shared_.bytes() + router_rows_.bytes() + picked_.bytes() + inner_.bytes();
  for (const RowBuffer* buffer : {&router_buffer_, &logits_buffer_, &scratch_buffer_, &shared_gate_buffer_,
                                  &weighed_buffer_, &gate_buffer_, &up_buffer_, &down_buffer_, &out_buffer_})
    bytes += buffer->bytes();
  return bytes + chosen_.capacity() * sizeof(ChosenExpert) + (place_.capacity() + choice_.capacity()) * 4;
}

Rows Experts::run(const ExpertsSpec& spec, const PreparedRows& input, const Rows* router_input) {
  const std::size_t n = input.rows().n;
  Products& products = stage_.products;
  const PreparedRows* router_rows = &input;
  if (router_input != nullptr) {
    const Rows normed = spec.router.norm ? router_buffer_.shape(n, router_input->cols) : *router_input;
    router_rows_.begin(normed, {&spec.router.logits});
    for_rows(stage_.pool, n, [&](std::size_t i) {
      if (spec.router.norm) stage_.norm(spec.router.norm, (*router_input)[i], normed.cols, normed[i]);
      router_rows_.prepare_row(i);
    });
    router_rows = &router_rows_;
  }
  logits_ = logits_buffer_.shape(n, spec.router.logits.rows);
  products.add(spec.router.logits, *router_rows, logits_);
  if (spec.shared_gate) {
    shared_gate_ = shared_gate_buffer_.shape(n, 1);
    products.add(spec.shared_gate, input, shared_gate_);
  }
  if (spec.shared.up) shared_.add_up(spec.shared, input);
  products.run("router, shared");
  {
    const engine::StageTimer timer("routing");
    choose(spec, n);
  }
  const PreparedRows& picked = gather(spec, input);
  multiply_up(spec, picked);
  const Rows shared = spec.shared.up ? shared_.add_down(spec.shared) : Rows{};
  multiply_down(spec);
  return combine(spec, n, shared);
}

void Experts::choose(const ExpertsSpec& spec, std::size_t n) {
  const std::size_t used = spec.router.used;
  chosen_.assign(n * used, {});  // a pass that is cancelled leaves rows without a choice, and goes on to the next stop
  scratch_ = scratch_buffer_.shape(n, logits_.cols);
  for_rows(stage_.pool, n, [&](std::size_t i) {
    choose_experts(spec.router, {logits_[i], logits_.cols}, {scratch_[i], logits_.cols},
                   std::span(chosen_).subspan(i * used, used));
  });
  group(spec.up.count, n, used);
}

/// Counts and places: the grouped rows of an expert lie together, in the order of the rows they come from.
void Experts::group(std::size_t experts, std::size_t n, std::size_t used) {
  first_of_.assign(experts + 1, 0);
  for (const ChosenExpert& choice : chosen_) ++first_of_[choice.expert + 1];
  for (std::size_t e = 0; e < experts; ++e) first_of_[e + 1] += first_of_[e];
  next_of_.assign(first_of_.begin(), first_of_.end() - 1);
  place_.resize(n * used);
  choice_.resize(n * used);
  for (std::size_t c = 0; c < chosen_.size(); ++c) {
    place_[c] = next_of_[chosen_[c].expert]++;
    choice_[place_[c]] = static_cast<std::uint32_t>(c);
  }
}

const PreparedRows& Experts::gather(const ExpertsSpec& spec, const PreparedRows& input) {
  const engine::StageTimer timer("routing");
  const std::size_t used = spec.router.used;
  const Matrix gate = spec.gate ? spec.gate[0] : Matrix{};
  const Matrix up = spec.up[0];
  if (spec.weigh_input) {
    const Rows weighed = weighed_buffer_.shape(choice_.size(), input.rows().cols);
    picked_.begin(weighed, {&gate, &up});
    for_rows(stage_.pool, choice_.size(), [&](std::size_t p) {
      const float* x = input.rows()[choice_[p] / used];
      std::copy_n(x, weighed.cols, weighed[p]);
      stage_.kernels.scale(weighed[p], chosen_[choice_[p]].weight, weighed.cols);
      picked_.prepare_row(p);
    });
  } else {
    picked_.begin_picked(input, choice_.size(), {&gate, &up});
    for_rows(stage_.pool, choice_.size(), [&](std::size_t p) { picked_.pick_row(p, input, choice_[p] / used); });
  }
  return picked_;
}

void Experts::multiply_up(const ExpertsSpec& spec, const PreparedRows& picked) {
  up_ = up_buffer_.shape(choice_.size(), spec.up.first.rows);
  gate_ = spec.gate ? gate_buffer_.shape(choice_.size(), up_.cols) : up_;
  for (std::size_t e = 0; e < spec.up.count; ++e) {
    const std::size_t first = first_of_[e];
    const std::size_t n = first_of_[e + 1] - first;
    if (n == 0) continue;
    if (spec.gate) stage_.products.add_part(spec.gate[e], picked, first, n, gate_[first], gate_.stride);
    stage_.products.add_part(spec.up[e], picked, first, n, up_[first], up_.stride);
  }
  stage_.products.run("experts gate, up");
}

void Experts::multiply_down(const ExpertsSpec& spec) {
  const Matrix any = spec.down[0];
  engine::StageTimer timer("activation");
  inner_.begin(gate_, {&any});
  for_rows(stage_.pool, gate_.n, [&](std::size_t p) {
    activate(stage_.kernels, spec.activation, gate_[p], spec.gate ? up_[p] : nullptr, gate_.cols);
    inner_.prepare_row(p);
  });
  timer.stop();
  down_ = down_buffer_.shape(gate_.n, stage_.spec.width);
  for (std::size_t e = 0; e < spec.down.count; ++e) {
    const std::size_t first = first_of_[e];
    stage_.products.add_part(spec.down[e], inner_, first, first_of_[e + 1] - first, down_[first], down_.stride);
  }
  stage_.products.run("experts down");
}

Rows Experts::combine(const ExpertsSpec& spec, std::size_t n, const Rows& shared) {
  const engine::StageTimer timer("experts sum");
  const std::size_t used = spec.router.used;
  const std::size_t width = stage_.spec.width;
  const Rows out = out_buffer_.shape(n, width);
  for_rows(stage_.pool, n, [&](std::size_t i) {
    std::fill_n(out[i], width, 0.0F);
    for (std::size_t c = i * used; c < (i + 1) * used; ++c) {
      const float weight = spec.weigh_input ? 1.0F : chosen_[c].weight;
      stage_.kernels.add_scaled(out[i], down_[place_[c]], weight, width);
    }
    if (!spec.shared.up) return;
    const float weight = spec.shared_gate ? 1.0F / (1.0F + std::exp(-shared_gate_[i][0])) : 1.0F;
    stage_.kernels.add_scaled(out[i], shared[i], weight, width);
  });
  return out;
}

}  // namespace hk::models
