// Choosing the experts of one token from router logits.
//
// Layer: models. In f32 and in a fixed order, so that the choice depends on the logits alone. Ties go to the lower
// index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/spec.h"

namespace hk::models {

struct ChosenExpert {
  std::uint32_t expert = 0;
  float weight = 0;
};

/// Fills `chosen` (spec.used entries), the best expert first. `logits` becomes the scores; `scratch` holds as many
/// floats.
void choose_experts(const RouterSpec& spec, std::span<float> logits, std::span<float> scratch,
                    std::span<ChosenExpert> chosen);

}  // namespace hk::models
