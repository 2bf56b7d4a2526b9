// Ministral 3 and dense Mistral of that time: Llama with YaRN and a query temperature that grows with the position.
#include "models/families/families.h"

namespace hk::models {

void describe_mistral3(Builder& b) {
  b.refuse_experts();
  b.read_sizes(NormKind::kRms);
  b.embedding();
  const RopeSettings settings = b.rope_settings();
  const std::size_t rope = b.rope(settings);
  const RopeStyle style = read_rope_style(b.keys, RopeStyle::kAdjacent);
  const auto temperature = static_cast<float>(b.keys.number_or("attention.temperature_scale", 0));
  if (temperature != 0 && settings.original_context == 0)
    b.keys.refuse(b.keys.full("rope.scaling.original_context_length"), "0", "the length of a temperature step");
  for (std::size_t i = 0; i < b.sizes.layers; ++i) {
    AttentionSpec attention = b.attention(i);
    attention.rope = rope;
    attention.rope_style = style;
    attention.temperature_scale = temperature;
    attention.temperature_length = static_cast<double>(settings.original_context);
    b.spec.layers.push_back(b.pre_norm_layer(i, attention, b.gated_feed_forward(i, Activation::kSilu)));
  }
  b.output();
}

}  // namespace hk::models
