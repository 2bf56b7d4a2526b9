// From metadata to the angles of a rotary embedding: base, factors and every kind of context scaling, folded into one
// table.
//
// Layer: models. Runs at load; the forward pass only multiplies positions by RopeTable::frequencies.
#pragma once

#include <cstddef>

#include "models/keys.h"
#include "models/spec.h"
#include "models/weights.h"

namespace hk::models {

enum class RopeScaling : std::uint8_t { kNone, kLinear, kYarn, kLongrope, kLlama3 };

/// Everything that decides the angles; `read_rope` fills it from metadata, families change what is fixed by
/// architecture.
struct RopeSettings {
  std::size_t n_rot = 0;
  double base = 10000;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;  ///< context is stretched by this much
  std::size_t original_context = 0;
  double attention_factor = 1;    ///< of cos and sin
  double yarn_extrapolation = 1;  ///< 0: pure interpolation
  double yarn_beta_fast = 32;
  double yarn_beta_slow = 1;
  double yarn_log_multiplier =
      0;  ///< 0: the magnitude is 1 + 0.1 ln(factor); else it is divided by the multiplied form
  double low_frequency_factor = 1;  // llama3
  double high_frequency_factor = 4;
  const float* factors = nullptr;       ///< n_rot / 2 divisors of the frequencies
  const float* long_factors = nullptr;  ///< those for sequences longer than original_context
};

/// Reads `<arch>.rope.*` and `hk.rope.*`; refuses an unknown scaling type and numbers without meaning.
/// `context_length` is the default of the original context.
RopeSettings read_rope(const Keys& keys, std::size_t n_rot, std::size_t context_length);
/// Binds rope_freqs, or rope_factors_long and rope_factors_short, when the file has them.
void read_rope_factors(const Keys& keys, Weights& weights, RopeSettings& settings);
/// The pairing of the architecture unless `hk.rope_style` says otherwise.
RopeStyle read_rope_style(const Keys& keys, RopeStyle usual);

RopeTable make_rope_table(const RopeSettings& settings);

}  // namespace hk::models
