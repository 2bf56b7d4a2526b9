// SmallThinker: the router reads the layer's input before attention; windows with rotation on all layers but every
// fourth, which comes first.
#include <utility>

#include "models/families/families.h"

namespace hk::models {

void describe_smallthinker(Builder& b) {
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const std::size_t rope = b.rope();
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kHalves);
  // Whatever window the file names, the models were made with this one; 0 means full attention with rotation
  // throughout.
  constexpr std::size_t kWindow = 4096;
  const bool windows = b.keys.count_or("attention.sliding_window", 0) != 0;
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    const bool local = windows && i % 4 != 0;
    AttentionSpec attention = b.attention(i);
    if (local || !windows) attention.rope = rope;
    attention.rope_style = style;
    if (local) b.set_window(attention, kWindow);
    LayerSpec layer = b.pre_norm_layer(i, attention);
    ExpertsSpec experts = b.experts(i, {Gating::kSoftmax, true, Activation::kRelu});
    experts.router.input = LayerInput::kLayer;
    Builder::set_experts(layer, std::move(experts));
    b.spec.layers.push_back(std::move(layer));
  }
  b.output();
}

}  // namespace hk::models
