// The building blocks of recurrent layers (see builder.h).
#include <fmt/format.h>

#include <utility>

#include "models/families/builder.h"

namespace hk::models {

std::size_t Builder::take_state(std::size_t floats) {
  constexpr std::size_t kLine = 16;  // floats of a cache line, so that parts of different layers do not share one
  const std::size_t offset = spec.state_floats;
  spec.state_floats += (floats + kLine - 1) / kLine * kLine;
  return offset;
}

ConvolutionSpec Builder::convolution(const std::string& tensor, std::size_t kernel, std::size_t channels) {
  ConvolutionSpec c;
  c.kernel = kernel;
  c.channels = channels;
  const float* stored = weights.vectors(tensor + ".weight", channels, kernel);
  std::vector<float> taps(kernel * channels);  // a row for each tap, so that channels lie side by side
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t tap = 0; tap < kernel; ++tap) taps[tap * channels + channel] = stored[channel * kernel + tap];
  }
  c.weights = weights.keep(std::move(taps));
  c.bias = weights.optional_vector(tensor + ".bias", channels);
  c.state = take_state(c.state_floats());
  return c;
}

/// Mamba-2.
ScanSpec Builder::scan(std::size_t layer) {
  ScanSpec s;
  s.inner = keys.count("ssm.inner_size");
  s.state_length = keys.count("ssm.state_size");
  s.heads = keys.count("ssm.time_step_rank");
  s.groups = keys.count("ssm.group_count");
  if (s.inner % s.heads != 0 || s.heads % s.groups != 0)
    keys.refuse(keys.full("ssm.time_step_rank"),
                fmt::format("{} with {} channels and {} groups", s.heads, s.inner, s.groups),
                "a number of heads that divides the channels and is divided by the groups");
  const std::size_t channels = s.inner + 2 * s.groups * s.state_length;
  s.in = weights.matrix(name(layer, "ssm_in"), s.inner + channels + s.heads, sizes.width);
  s.convolution = convolution(name(layer, "ssm_conv1d"), keys.count("ssm.conv_kernel"), channels);
  s.dt_bias = weights.vector(name(layer, "ssm_dt.bias"), s.heads);
  s.decay = weights.vectors(name(layer, "ssm_a"), s.heads, 1);
  s.skip = weights.vectors(name(layer, "ssm_d"), s.heads, 1);
  if (weights.contains(name(layer, "ssm_norm.weight"))) {
    s.norm = {NormKind::kRms, epsilon_, nullptr, nullptr};
    s.norm.weight = weights.vectors(name(layer, "ssm_norm.weight"), s.groups, s.inner / s.groups);
  }
  s.out = weights.matrix(name(layer, "ssm_out"), sizes.width, s.inner);
  s.state = take_state(s.state_floats());
  return s;
}

/// Mamba-1.
ScanSpec Builder::channel_scan(std::size_t layer) {
  ScanSpec s;
  s.inner = keys.count("ssm.inner_size");
  s.state_length = keys.count("ssm.state_size");
  s.dt_rank = keys.count("ssm.time_step_rank");
  s.in = weights.matrix(name(layer, "ssm_in"), 2 * s.inner, sizes.width);
  s.convolution = convolution(name(layer, "ssm_conv1d"), keys.count("ssm.conv_kernel"), s.inner);
  s.x = weights.matrix(name(layer, "ssm_x"), s.dt_rank + 2 * s.state_length, s.inner);
  const bool bare = keys.flag_or("ssm.dt_b_c_rms", false);
  const auto part_norm = [&](const char* part, std::size_t n) {
    return bare ? bare_norm() : optional_norm(name(layer, part), n);
  };
  s.dt_norm = part_norm("ssm_dt_norm", s.dt_rank);
  s.b_norm = part_norm("ssm_b_norm", s.state_length);
  s.c_norm = part_norm("ssm_c_norm", s.state_length);
  s.dt = weights.matrix(name(layer, "ssm_dt"), s.inner, s.dt_rank);
  s.dt_bias = std::exchange(s.dt.bias, nullptr);
  if (s.dt_bias == nullptr) s.dt_bias = weights.vector(name(layer, "ssm_dt.bias"), s.inner);
  s.decay = weights.vectors(name(layer, "ssm_a"), s.inner, s.state_length);
  s.skip = weights.vector(name(layer, "ssm_d"), s.inner);
  s.out = weights.matrix(name(layer, "ssm_out"), sizes.width, s.inner);
  s.state = take_state(s.state_floats());
  return s;
}

}  // namespace hk::models
