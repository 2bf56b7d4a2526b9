// The exponential of sampling and scoring.
//
// Layer: engine/generate.
#pragma once

#include <bit>
#include <cstdint>

namespace hk::engine {

/// e^x for x <= 0 to two units in the last place; below -87 it is 0. Own code, so that draws do not depend on the C
/// library, and free of calls and branches, so that it becomes vector instructions.
inline float exponential(float x) {
  const float clamped = x < -87.0f ? -87.0f : x;
  const float scaled = clamped * 1.44269504f;
  const float whole = (scaled + 12582912.0f) - 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
  // The rest in two steps, because whole * log(2) in one would lose its last bits.
  const float rest = (clamped - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float sum = 1.0f / 720;  // Taylor series: |rest| <= 0.35, the next term is below 2^-23
  sum = sum * rest + 1.0f / 120;
  sum = sum * rest + 1.0f / 24;
  sum = sum * rest + 1.0f / 6;
  sum = sum * rest + 0.5f;
  sum = sum * rest + 1.0f;
  sum = sum * rest + 1.0f;
  const float power = std::bit_cast<float>((static_cast<std::int32_t>(whole) + 127) << 23);
  return x < -87.0f ? 0.0f : sum * power;
}

}  // namespace hk::engine
