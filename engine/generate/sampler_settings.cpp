// Names of sampling steps and the ranges of the settings.
#include "engine/generate/sampler_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace hk::engine {
namespace {

constexpr std::array<std::string_view, 9> kStepNames = {"penalties", "dry",   "top_n_sigma", "top_k",      "typical_p",
                                                        "top_p",     "min_p", "xtc",         "temperature"};

[[noreturn]] void refuse(std::string_view name, double value, std::string_view allowed) {
  throw Error(fmt::format("sampling: {} must be {}, not {}", name, allowed, value), ErrorKind::kUsage);
}

// Written so that NaN is refused.
void check(std::string_view name, float value, float low, float high) {
  if (value >= low && value <= high) return;
  if (high == std::numeric_limits<float>::max()) refuse(name, value, fmt::format("at least {}", low));
  refuse(name, value, fmt::format("from {} to {}", low, high));
}

void check_positive(std::string_view name, float value) {
  if (!(value > 0 && std::isfinite(value))) refuse(name, value, "greater than 0");
}

void check_finite(std::string_view name, float value) {
  if (!std::isfinite(value)) refuse(name, value, "a finite number");
}

}  // namespace

std::string_view sampler_step_name(SamplerStep step) { return kStepNames[static_cast<std::size_t>(step)]; }

std::vector<SamplerStep> parse_sampler_order(std::string_view text) {
  std::vector<SamplerStep> order;
  while (!text.empty()) {
    const auto end = text.find_first_of(";,");
    const std::string_view name = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const auto found = std::find(kStepNames.begin(), kStepNames.end(), name);
    if (found == kStepNames.end())
      throw Error(fmt::format("sampling: \"{}\" is no sampling step; there are {}", name, fmt::join(kStepNames, ", ")),
                  ErrorKind::kUsage);
    const auto step = static_cast<SamplerStep>(found - kStepNames.begin());
    if (std::find(order.begin(), order.end(), step) != order.end())
      throw Error(fmt::format("sampling: the step {} is listed twice", name), ErrorKind::kUsage);
    order.push_back(step);
  }
  return order;
}

void SamplerSettings::validate() const {
  constexpr float kAny = std::numeric_limits<float>::max();
  check("temperature", temperature, 0, kAny);
  check("dynamic temperature range", dynamic_range, 0, kAny);
  check_positive("dynamic temperature exponent", dynamic_exponent);
  check("top-p", top_p, 0, 1);
  check("min-p", min_p, 0, 1);
  check("typical-p", typical_p, 0, 1);
  check_finite("top-n-sigma", top_n_sigma);
  check("xtc-probability", xtc_probability, 0, 1);
  check("xtc-threshold", xtc_threshold, 0, 1);
  if (repeat_last_n < -1) refuse("repeat-last-n", repeat_last_n, "-1 (all), 0 (off) or a number of tokens");
  check_positive("repeat-penalty", repeat_penalty);
  check_finite("frequency-penalty", frequency_penalty);
  check_finite("presence-penalty", presence_penalty);
  check("dry-multiplier", dry.multiplier, 0, kAny);
  check("dry-base", dry.base, 1, kAny);
  if (dry.allowed_length < 1) refuse("dry-allowed-length", dry.allowed_length, "at least 1");
  if (dry.last_n < -1) refuse("dry-penalty-last-n", dry.last_n, "-1 (all), 0 (off) or a number of tokens");
  if (mirostat < 0 || mirostat > 2) refuse("mirostat", mirostat, "0, 1 or 2");
  check_positive("mirostat-tau", mirostat_tau);
  check("mirostat-eta", mirostat_eta, 0, kAny);
  if (min_keep < 0) refuse("min-keep", min_keep, "at least 0");
  for (const auto& [id, bias] : logit_bias)
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      refuse(fmt::format("the bias of token {}", id), bias, "a finite number or -infinity");
}

}  // namespace hk::engine
