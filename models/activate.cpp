// The activation of a feed-forward (see activate.h).
#include "models/activate.h"

#include <algorithm>
#include <cmath>

namespace hk::models {

namespace {

void limit_both(const kernels::KernelTable& kernels, float limit, float* gate, float* up, std::size_t n) {
  kernels.silu_mul(gate, nullptr, n, gate);
  for (std::size_t i = 0; i < n; ++i) gate[i] = std::min(gate[i], limit) * std::clamp(up[i], -limit, limit);
}

/// What of each value lies above mean + deviations * (standard deviation of the row); zero for the rest.
void keep_peaks(float deviations, float* gate, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += gate[i];
  const float mean = sum / static_cast<float>(n);
  float squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares += (gate[i] - mean) * (gate[i] - mean);
  const float cut = mean + deviations * std::sqrt(squares / static_cast<float>(std::max<std::size_t>(2, n) - 1));
  for (std::size_t i = 0; i < n; ++i) gate[i] = std::max(gate[i] - cut, 0.0F);
}

void swiglu_oai(const kernels::KernelTable& kernels, float* gate, float* up, std::size_t n) {
  constexpr float kLimit = 7.0F;
  constexpr float kSlope = 1.702F;
  // x * sigmoid(a x) is silu(a x) / a
  for (std::size_t i = 0; i < n; ++i) {
    gate[i] = std::min(gate[i], kLimit) * kSlope;
    up[i] = (std::clamp(up[i], -kLimit, kLimit) + 1.0F) / kSlope;
  }
  kernels.silu_mul(gate, up, n, gate);
}

}  // namespace

void activate(const kernels::KernelTable& kernels, const ActivationSpec& spec, float* gate, float* up, std::size_t n) {
  if (spec.sparsity != 0) keep_peaks(spec.sparsity, gate, n);
  switch (spec.kind) {
    case Activation::kSilu:
      if (spec.limit != 0 && up != nullptr) {
        limit_both(kernels, spec.limit, gate, up, n);
      } else {
        kernels.silu_mul(gate, up, n, gate);
      }
      break;
    case Activation::kGelu:
      kernels.gelu_mul(gate, up, n, gate);
      break;
    case Activation::kRelu:
      for (std::size_t i = 0; i < n; ++i) gate[i] = std::max(gate[i], 0.0F) * (up == nullptr ? 1.0F : up[i]);
      break;
    case Activation::kRelu2:
      kernels.relu2_mul(gate, up, n, gate);
      break;
    case Activation::kSwigluOai:
      swiglu_oai(kernels, gate, up, n);
      break;
    case Activation::kXielu:
      for (std::size_t i = 0; i < n; ++i) {
        const float x = gate[i];
        const float bent =
            x > 0 ? spec.xielu.positive * x * x : spec.xielu.negative * (std::expm1(std::min(x, spec.xielu.limit)) - x);
        gate[i] = (bent + spec.xielu.linear * x) * (up == nullptr ? 1.0F : up[i]);
      }
      break;
  }
}

}  // namespace hk::models
