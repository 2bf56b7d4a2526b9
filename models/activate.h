// The activation of a feed-forward, gated or not.
//
// Layer: models.
#pragma once

#include <cstddef>

#include "kernels/kernels.h"
#include "models/spec.h"

namespace hk::models {

/// gate = act(gate) * up, or act(gate) when `up` is null. `up` is scratch afterwards.
void activate(const kernels::KernelTable& kernels, const ActivationSpec& spec, float* gate, float* up, std::size_t n);

}  // namespace hk::models
