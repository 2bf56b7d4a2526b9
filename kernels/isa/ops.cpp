// Norms, activations, rotary embedding and softmax of one ISA level.
#include "kernels/isa/level.h"
#include "kernels/isa/math.h"

namespace hk::kernels {
namespace {

HK_INLINE float sum_of_squares(const float* x, std::size_t n, float mean) {
  vf sum{};
  for_lanes(n, [&](std::size_t i, int count) HK_LAMBDA_INLINE {
    // lanes past the end must add nothing, also when a mean is taken off
    vf v = load_some(x + i, count) - mean;
    if (count < W) {
      alignas(64) float kept[W] = {};
      store_first(kept, v, count);
      v = load_f(kept);
    }
    sum = fma(v, v, sum);
  });
  return sum_lanes(sum);
}

template <typename Activation>
HK_INLINE void gated(const float* gate, const float* up, std::size_t n, float* out, const Activation& activation) {
  for_lanes(n, [&](std::size_t i, int count) HK_LAMBDA_INLINE {
    vf v = activation(load_some(gate + i, count));
    if (up != nullptr) v = v * load_some(up + i, count);
    store_some(out + i, v, count);
  });
}

}  // namespace

namespace HK_LEVEL {

void rms_norm(const float* x, const float* weight, float eps, std::size_t n, float* out) {
  if (n == 0) return;
  const float scale = 1.0f / __builtin_sqrtf(sum_of_squares(x, n, 0.0f) / static_cast<float>(n) + eps);
  for_lanes(n, [&](std::size_t i, int count) HK_LAMBDA_INLINE {
    vf v = load_some(x + i, count) * scale;
    if (weight != nullptr) v = v * load_some(weight + i, count);
    store_some(out + i, v, count);
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, std::size_t n, float* out) {
  if (n == 0) return;
  vf sum{};
  for_lanes(n, [&](std::size_t i, int count) HK_LAMBDA_INLINE { sum = sum + load_some(x + i, count); });
  const float mean = sum_lanes(sum) / static_cast<float>(n);
  const float scale = 1.0f / __builtin_sqrtf(sum_of_squares(x, n, mean) / static_cast<float>(n) + eps);
  for_lanes(n, [&](std::size_t i, int count) HK_LAMBDA_INLINE {
    vf v = (load_some(x + i, count) - mean) * scale;
    if (weight != nullptr) v = v * load_some(weight + i, count);
    if (bias != nullptr) v = v + load_some(bias + i, count);
    store_some(out + i, v, count);
  });
}

void add(float* x, const float* y, std::size_t n) {
  for_lanes(n, [&](std::size_t i, int count)
                   HK_LAMBDA_INLINE { store_some(x + i, load_some(x + i, count) + load_some(y + i, count), count); });
}

void add_scaled(float* x, const float* y, float scale, std::size_t n) {
  for_lanes(n, [&](std::size_t i, int count) HK_LAMBDA_INLINE {
    store_some(x + i, fma(load_some(y + i, count), set_f(scale), load_some(x + i, count)), count);
  });
}

void scale(float* x, float factor, std::size_t n) {
  for_lanes(n, [&](std::size_t i, int count)
                   HK_LAMBDA_INLINE { store_some(x + i, load_some(x + i, count) * factor, count); });
}

void silu_mul(const float* gate, const float* up, std::size_t n, float* out) {
  gated(gate, up, n, out, [](vf x) HK_LAMBDA_INLINE { return x * sigmoid_f(x); });
}

/// 0.5 x (1 + tanh(u)) equals x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
void gelu_mul(const float* gate, const float* up, std::size_t n, float* out) {
  gated(gate, up, n, out, [](vf x) HK_LAMBDA_INLINE {
    const vf u = 0.79788456080286536f * (x + 0.044715f * x * x * x);
    return x * sigmoid_f(2.0f * u);
  });
}

void relu2_mul(const float* gate, const float* up, std::size_t n, float* out) {
  gated(gate, up, n, out, [](vf x) HK_LAMBDA_INLINE {
    const vf positive = max_f(x, vf{});
    return positive * positive;
  });
}

void rope_adjacent(float* head, const float* cos, const float* sin, std::size_t n_rot) {
  for (std::size_t i = 0; i < n_rot / 2; ++i) {
    const float a = head[2 * i], b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

void rope_halves(float* head, const float* cos, const float* sin, std::size_t n_rot) {
  float* second = head + n_rot / 2;
  for (std::size_t i = 0; i < n_rot / 2; ++i) {
    const float a = head[i], b = second[i];
    head[i] = a * cos[i] - b * sin[i];
    second[i] = a * sin[i] + b * cos[i];
  }
}

void softmax(float* x, std::size_t n) {
  if (n == 0) return;
  float largest = x[0];
  for (std::size_t i = 1; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  vf sum{};
  for_lanes(n, [&](std::size_t i, int count) HK_LAMBDA_INLINE {
    const vf e = exp_f(load_some(x + i, count) - largest);
    store_some(x + i, e, count);
    sum = sum + load_some(x + i, count);  // reloaded, so that lanes past the end are zero
  });
  scale(x, 1.0f / sum_lanes(sum), n);
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
