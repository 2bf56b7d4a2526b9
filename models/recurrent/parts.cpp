// Small functions of the recurrent layers (see parts.h).
#include "models/recurrent/parts.h"

#include <cmath>

namespace hk::models {

float softplus(float x) { return x > 20.0F ? x : std::log1p(std::exp(x)); }

float sigmoid(float x) { return 1.0F / (1.0F + std::exp(-x)); }

}  // namespace hk::models
