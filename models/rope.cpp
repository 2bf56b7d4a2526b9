// From metadata to the angles of a rotary embedding (see rope.h).
#include "models/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace hk::models {

namespace {

RopeScaling read_scaling_type(const Keys& keys) {
  const auto type = keys.text("rope.scaling.type");
  // A factor without a type is linear; without a factor linear changes nothing.
  if (!type || *type == "linear") return RopeScaling::kLinear;
  if (*type == "none" || type->empty()) return RopeScaling::kNone;
  if (*type == "yarn") return RopeScaling::kYarn;
  if (*type == "longrope") return RopeScaling::kLongrope;
  if (*type == "llama3") return RopeScaling::kLlama3;
  keys.refuse(keys.full("rope.scaling.type"), fmt::format("\"{}\"", *type),
              "one of none, linear, yarn, longrope and llama3");
}

/// The pair index, as a fraction, whose wave turns `turns` times within `context` positions.
double pair_with_turns(double turns, double context, double base, std::size_t n_rot) {
  return static_cast<double>(n_rot) * std::log(context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

/// YaRN: fast pairs (many turns within the trained context) keep their angle, slow ones are stretched, a ramp between.
void apply_yarn(const RopeSettings& s, std::vector<double>& frequencies) {
  const double context = static_cast<double>(s.original_context);
  const double last_dim = static_cast<double>(s.n_rot) - 1;
  const double low = std::max(0.0, std::floor(pair_with_turns(s.yarn_beta_fast, context, s.base, s.n_rot)));
  const double high = std::min(last_dim, std::ceil(pair_with_turns(s.yarn_beta_slow, context, s.base, s.n_rot)));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    // The width of the ramp is kept above zero, as in the published method.
    const double along = (static_cast<double>(i) - low) / std::max(0.001, high - low);
    const double original_share = (1 - std::clamp(along, 0.0, 1.0)) * s.yarn_extrapolation;
    frequencies[i] = frequencies[i] / s.factor * (1 - original_share) + frequencies[i] * original_share;
  }
}

double yarn_magnitude(const RopeSettings& s) {
  if (s.yarn_extrapolation == 0 || s.factor <= 1) return 1;
  const double natural = 1 + 0.1 * std::log(s.factor);
  if (s.yarn_log_multiplier == 0) return natural;
  return natural / (1 + 0.1 * s.yarn_log_multiplier * std::log(s.factor));
}

/// Llama 3.1: waves longer than the trained context are stretched, short ones kept, and a ramp between.
void apply_llama3(const RopeSettings& s, std::vector<double>& frequencies) {
  const double context = static_cast<double>(s.original_context);
  for (double& frequency : frequencies) {
    const double turns = context * frequency / (2 * std::numbers::pi);
    const double kept =
        std::clamp((turns - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor), 0.0, 1.0);
    frequency = frequency / s.factor * (1 - kept) + frequency * kept;
  }
}

std::vector<double> make_frequencies(const RopeSettings& s, const float* factors) {
  std::vector<double> frequencies(s.n_rot / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] = std::pow(s.base, -2.0 * static_cast<double>(i) / static_cast<double>(s.n_rot));
    if (factors != nullptr) frequencies[i] /= static_cast<double>(factors[i]);
  }
  switch (s.scaling) {
    case RopeScaling::kNone:
      break;
    case RopeScaling::kYarn:
      apply_yarn(s, frequencies);
      break;
    case RopeScaling::kLlama3:
      apply_llama3(s, frequencies);
      break;
    case RopeScaling::kLinear:
    case RopeScaling::kLongrope:
      for (double& frequency : frequencies) frequency /= s.factor;
      break;
  }
  return frequencies;
}

}  // namespace

RopeSettings read_rope(const Keys& keys, std::size_t n_rot, std::size_t context_length) {
  RopeSettings s;
  s.n_rot = n_rot;
  s.base = keys.positive_or("rope.freq_base", 10000);
  if (s.base <= 1) keys.refuse(keys.full("rope.freq_base"), fmt::format("{}", s.base), "a base above 1");
  s.scaling = read_scaling_type(keys);
  const std::string factor_key = keys.contains("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const double factor = keys.number_or(factor_key, 1);
  if (factor < 0) keys.refuse(keys.full(factor_key), fmt::format("{}", factor), "a factor above 0");
  s.factor = factor == 0 ? 1 : factor;  // writers use 0 for "not scaled"
  if (s.scaling == RopeScaling::kNone) s.factor = 1;
  s.original_context = keys.count_or("rope.scaling.original_context_length", context_length);
  s.attention_factor = keys.positive_or("rope.scaling.attn_factor", 1);

  if (s.scaling == RopeScaling::kYarn) {
    s.yarn_extrapolation = keys.number_or("rope.scaling.yarn_ext_factor", 1);
    s.attention_factor *= keys.positive_or("rope.scaling.yarn_attn_factor", 1);
    s.yarn_log_multiplier = keys.number_or("rope.scaling.yarn_log_multiplier", 0);
    s.yarn_beta_fast =
        keys.plain_number("hk.rope.beta_fast").value_or(keys.number_or("rope.scaling.yarn_beta_fast", 32));
    s.yarn_beta_slow =
        keys.plain_number("hk.rope.beta_slow").value_or(keys.number_or("rope.scaling.yarn_beta_slow", 1));
    if (s.yarn_beta_fast <= 0 || s.yarn_beta_slow <= 0 || s.yarn_beta_fast < s.yarn_beta_slow)
      keys.refuse("yarn beta_fast, beta_slow", fmt::format("{}, {}", s.yarn_beta_fast, s.yarn_beta_slow),
                  "two numbers above 0, the first not below the second");
  }
  if (s.scaling == RopeScaling::kLlama3) {
    s.low_frequency_factor = keys.plain_number("hk.rope.low_freq_factor").value_or(1);
    s.high_frequency_factor = keys.plain_number("hk.rope.high_freq_factor").value_or(4);
    if (s.low_frequency_factor <= 0 || s.high_frequency_factor <= s.low_frequency_factor)
      keys.refuse("hk.rope.high_freq_factor", fmt::format("{}", s.high_frequency_factor),
                  fmt::format("a number above hk.rope.low_freq_factor ({}), which is above 0", s.low_frequency_factor));
  }
  if ((s.scaling == RopeScaling::kYarn || s.scaling == RopeScaling::kLlama3) && s.original_context == 0)
    keys.refuse(keys.full("rope.scaling.original_context_length"), "0", "the context before scaling");
  return s;
}

void read_rope_factors(const Keys& keys, Weights& weights, RopeSettings& s) {
  const std::size_t pairs = s.n_rot / 2;
  const auto checked = [&](const std::string& tensor) {
    const float* factors = weights.vector(tensor, pairs);
    for (std::size_t i = 0; i < pairs; ++i) {
      if (!std::isfinite(factors[i]) || factors[i] == 0)
        keys.refuse(tensor, fmt::format("{} at {}", factors[i], i), "finite divisors other than 0");
    }
    return factors;
  };
  const bool has_long = weights.contains("rope_factors_long.weight");
  const bool has_short = weights.contains("rope_factors_short.weight");
  if (has_long != has_short)
    keys.refuse("rope_factors", has_long ? "the long set alone" : "the short set alone", "both or neither");
  if (has_long) {
    s.factors = checked("rope_factors_short.weight");
    s.long_factors = checked("rope_factors_long.weight");
  } else if (s.scaling == RopeScaling::kLongrope) {
    keys.refuse(keys.full("rope.scaling.type"), "\"longrope\"",
                "tensors rope_factors_long.weight and rope_factors_short.weight with it");
  } else if (weights.contains("rope_freqs.weight")) {
    s.factors = checked("rope_freqs.weight");
    if (s.scaling == RopeScaling::kLlama3)
      keys.refuse(keys.full("rope.scaling.type"), "\"llama3\" beside a tensor 'rope_freqs.weight'",
                  "one of the two, since both scale the same frequencies");
  }
}

RopeStyle read_rope_style(const Keys& keys, RopeStyle usual) {
  const auto style = keys.plain_text("hk.rope_style");
  if (!style) return usual;
  if (*style == "norm") return RopeStyle::kAdjacent;
  if (*style == "neox") return RopeStyle::kHalves;
  keys.refuse("hk.rope_style", fmt::format("\"{}\"", *style), "norm or neox");
}

RopeTable make_rope_table(const RopeSettings& s) {
  RopeTable table;
  table.n_rot = s.n_rot;
  table.original_context = s.original_context;
  table.frequencies = make_frequencies(s, s.factors);
  if (s.long_factors != nullptr) table.long_frequencies = make_frequencies(s, s.long_factors);
  table.magnitude = static_cast<float>(s.attention_factor * (s.scaling == RopeScaling::kYarn ? yarn_magnitude(s) : 1));
  return table;
}

}  // namespace hk::models
