// Ministral 3, dense Mistral of that time, and its mixtures: Llama with YaRN and a query temperature that grows with
// the position.
#include "models/families/families.h"

namespace hk::models {

void describe_mistral3(Builder& b) {
  describe_llama(b);
  const auto temperature = static_cast<float>(b.keys.number_or("attention.temperature_scale", 0));
  if (temperature == 0) return;
  const std::size_t step = b.keys.positive_count_or("rope.scaling.original_context_length", b.sizes.context);
  for (LayerSpec& layer : b.spec.layers) {
    layer.attention.temperature_scale = temperature;
    layer.attention.temperature_length = static_cast<double>(step);
  }
}

}  // namespace hk::models
