// The building blocks of mixtures of experts (see builder.h).
#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "models/families/builder.h"

namespace hk::models {

namespace {

Gating read_gating(const Keys& keys, Gating usual) {
  switch (keys.count_or("expert_gating_func", 0)) {
    case 0:
      return usual;
    case 1:
      return Gating::kSoftmax;
    case 2:
      return Gating::kSigmoid;
    case 3:
      return Gating::kSoftmaxOverChosen;
    default:
      keys.refuse(keys.full("expert_gating_func"), fmt::format("{}", keys.count("expert_gating_func")),
                  "1 (softmax), 2 (sigmoid) or 3 (softmax over the chosen)");
  }
}

void read_groups(const Keys& keys, std::size_t experts, RouterSpec& router) {
  constexpr std::size_t kMostGroups = 64;
  router.groups = keys.count_or("expert_group_count", 0);
  if (router.groups <= 1) {
    router.groups = 1;
    return;
  }
  router.groups_used = keys.count("expert_group_used_count");
  if (router.groups > kMostGroups || experts % router.groups != 0)
    keys.refuse(keys.full("expert_group_count"), fmt::format("{}", router.groups),
                fmt::format("a divisor of the {} experts, at most {}", experts, kMostGroups));
  if (router.groups_used > router.groups || experts / router.groups * router.groups_used < router.used)
    keys.refuse(keys.full("expert_group_used_count"), fmt::format("{} of {} groups", router.groups_used, router.groups),
                fmt::format("groups that hold the {} experts of a token", router.used));
}

}  // namespace

RouterSpec Builder::router(std::size_t layer, std::size_t experts, const ExpertDefaults& defaults) {
  RouterSpec router;
  router.used = keys.count("expert_used_count");
  if (router.used > experts)
    keys.refuse(keys.full("expert_used_count"), fmt::format("{}", router.used),
                fmt::format("at most the {} experts there are", experts));
  router.gating = read_gating(keys, defaults.gating);
  router.renormalise = keys.flag_or("expert_weights_norm", defaults.renormalise);
  const double scale = keys.number_or("expert_weights_scale", 1);
  router.weights_scale = static_cast<float>(scale == 0 ? 1 : scale);  // writers use 0 for "not scaled"
  read_groups(keys, experts, router);
  if (defaults.router_norm) {
    router.logits = weights.bare_matrix(name(layer, "ffn_gate_inp"), experts, sizes.width);
    router.input = LayerInput::kStream;
    const float* factors = weights.vector(name(layer, "ffn_gate_inp.scale"), sizes.width);
    std::vector<float> scaled(factors, factors + sizes.width);
    for (float& factor : scaled) factor /= std::sqrt(static_cast<float>(sizes.width));
    router.norm = bare_norm();
    router.norm.weight = weights.keep(std::move(scaled));
  } else {
    router.logits = weights.matrix(name(layer, "ffn_gate_inp"), experts, sizes.width);
  }
  router.selection_bias = weights.optional_vector(name(layer, "exp_probs_b.bias"), experts);
  return router;
}

std::size_t Builder::expert_width(std::size_t layer) const {
  return keys.count_or("expert_feed_forward_length", sizes.feed_forward[layer]);
}

std::size_t Builder::shared_width(std::size_t layer, std::size_t usual_count) const {
  const std::size_t given = keys.count_or("expert_shared_feed_forward_length", 0);
  const std::size_t count = keys.count_or("expert_shared_count", usual_count);
  return given != 0 ? given : count * expert_width(layer);
}

ExpertsSpec Builder::experts(std::size_t layer, const ExpertDefaults& defaults) {
  const std::size_t count = keys.count("expert_count");
  const std::size_t inner = expert_width(layer);
  ExpertsSpec e;
  e.router = router(layer, count, defaults);
  e.activation.kind = defaults.activation;
  if (weights.contains(name(layer, "ffn_gate_up_exps.weight"))) {
    const MatrixBank fused = weights.bank(name(layer, "ffn_gate_up_exps"), count, 2 * inner, sizes.width);
    e.gate = fused.slice(0, inner);
    e.up = fused.slice(inner, inner);
  } else {
    if (defaults.gated) e.gate = expert_bank(layer, "ffn_gate", count, inner, sizes.width);
    e.up = expert_bank(layer, "ffn_up", count, inner, sizes.width);
  }
  e.down = expert_bank(layer, "ffn_down", count, sizes.width, inner);
  return e;
}

/// One tensor for all experts, or, in old files, "ffn_up.<expert>" for each, all of one type.
MatrixBank Builder::expert_bank(std::size_t layer, std::string_view part, std::size_t count, std::size_t rows,
                                std::size_t cols) {
  const std::string together = name(layer, fmt::format("{}_exps", part));
  if (weights.contains(together + ".weight") || !weights.contains(name(layer, fmt::format("{}.0.weight", part))))
    return weights.bank(together, count, rows, cols);
  MatrixBank bank;
  bank.count = count;
  for (std::size_t e = 0; e < count; ++e) {
    const std::string own = name(layer, fmt::format("{}.{}", part, e));
    bank.separate.push_back(weights.matrix(own, rows, cols));
    if (bank.separate[e].activation != bank.separate[0].activation)
      keys.refuse(own, "stored in a type with other activations than expert 0", "types of one kind within a layer");
  }
  bank.first = bank.separate.front();
  return bank;
}

void Builder::shared_expert(ExpertsSpec& e, std::size_t layer, std::size_t inner) {
  if (inner == 0) return;
  e.shared.activation = e.activation;
  if (e.gate) e.shared.gate = weights.matrix(name(layer, "ffn_gate_shexp"), inner, sizes.width);
  e.shared.up = weights.matrix(name(layer, "ffn_up_shexp"), inner, sizes.width);
  e.shared.down = weights.matrix(name(layer, "ffn_down_shexp"), sizes.width, inner);
  if (weights.contains(name(layer, "ffn_gate_inp_shexp.weight")))
    e.shared_gate = weights.matrix(name(layer, "ffn_gate_inp_shexp"), 1, sizes.width);
}

void Builder::set_experts(LayerSpec& layer, ExpertsSpec experts) {
  layer.feed_forward_kind = FeedForwardKind::kExperts;
  layer.experts = std::move(experts);
}

void Builder::refuse_experts() const {
  const std::size_t count = keys.count_or("expert_count", 0);
  if (count != 0)
    keys.refuse(keys.full("expert_count"), fmt::format("{}", count),
                "0: mixtures of experts are not known for this family");
}

void Builder::experts_or_dense(LayerSpec& layer, std::size_t index, bool mixes, const ExpertDefaults& defaults,
                               std::size_t usual_shared) {
  if (!mixes) {
    layer.feed_forward = gated_feed_forward(index, Activation::kSilu);
    return;
  }
  ExpertsSpec mixture = experts(index, defaults);
  shared_expert(mixture, index, shared_width(index, usual_shared));
  set_experts(layer, std::move(mixture));
}

}  // namespace hk::models
