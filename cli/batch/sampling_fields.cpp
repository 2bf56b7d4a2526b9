// The table of sampling fields; names are those of the flags and of other programs.
#include "cli/batch/sampling_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace hk::cli {
namespace {

using engine::SamplerSettings;
using Setter = void (*)(SamplerSettings& settings, std::string_view field, const Json& value);

constexpr auto kLargestInt = std::numeric_limits<int>::max();

template <auto Member>
void set_float(SamplerSettings& settings, std::string_view field, const Json& value) {
  settings.*Member = static_cast<float>(field_number(value, field));
}

template <auto Member>
void set_int(SamplerSettings& settings, std::string_view field, const Json& value) {
  settings.*Member = static_cast<int>(field_integer(value, field, -1, kLargestInt));
}

template <auto Member>
void set_dry_float(SamplerSettings& settings, std::string_view field, const Json& value) {
  settings.dry.*Member = static_cast<float>(field_number(value, field));
}

template <auto Member>
void set_dry_int(SamplerSettings& settings, std::string_view field, const Json& value) {
  settings.dry.*Member = static_cast<int>(field_integer(value, field, -1, kLargestInt));
}

void set_seed(SamplerSettings& settings, std::string_view field, const Json& value) {
  if (value.is_number_unsigned()) {
    settings.seed = value.get<std::uint64_t>();
    return;
  }
  constexpr auto kLimits = std::numeric_limits<std::int64_t>();
  settings.seed = static_cast<std::uint64_t>(field_integer(value, field, kLimits.min(), kLimits.max()));
}

void set_breakers(SamplerSettings& settings, std::string_view field, const Json& value) {
  settings.dry.breakers = field_texts(value, field);
}

void set_order(SamplerSettings& settings, std::string_view field, const Json& value) {
  std::string names;
  for (const auto& name : field_texts(value, field)) names += (names.empty() ? "" : ";") + name;
  settings.order = engine::parse_sampler_order(names);
}

void set_ignore_eos(SamplerSettings& settings, std::string_view field, const Json& value) {
  settings.ignore_eos = field_boolean(value, field);
}

/// {"15043": 1.5, "15044": "-inf"}; -100 bans, as people know from the OpenAI API.
void set_bias(SamplerSettings& settings, std::string_view field, const Json& value) {
  constexpr double kBan = -100;
  if (!value.is_object()) refuse_field(value, field, "an object of token ids and numbers");
  for (const auto& [name, bias] : value.items()) {
    engine::TokenId id = 0;
    const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (problem != std::errc{} || end != name.data() + name.size())
      refuse_field(Json(name), field, "token ids as keys");
    const bool banned = bias == "-inf" || (bias.is_number() && bias.get<double>() <= kBan);
    settings.logit_bias.emplace_back(
        id, banned ? -std::numeric_limits<float>::infinity() : static_cast<float>(field_number(bias, field)));
  }
}

const std::unordered_map<std::string_view, Setter>& setters() {
  using S = SamplerSettings;
  using D = engine::DrySettings;
  static const std::unordered_map<std::string_view, Setter> table = {
      {"temperature", set_float<&S::temperature>},
      {"temp", set_float<&S::temperature>},
      {"top_k", set_int<&S::top_k>},
      {"top_p", set_float<&S::top_p>},
      {"min_p", set_float<&S::min_p>},
      {"typical_p", set_float<&S::typical_p>},
      {"top_n_sigma", set_float<&S::top_n_sigma>},
      {"xtc_probability", set_float<&S::xtc_probability>},
      {"xtc_threshold", set_float<&S::xtc_threshold>},
      {"repeat_last_n", set_int<&S::repeat_last_n>},
      {"repeat_penalty", set_float<&S::repeat_penalty>},
      {"repetition_penalty", set_float<&S::repeat_penalty>},
      {"frequency_penalty", set_float<&S::frequency_penalty>},
      {"presence_penalty", set_float<&S::presence_penalty>},
      {"dynatemp_range", set_float<&S::dynamic_range>},
      {"dynatemp_exponent", set_float<&S::dynamic_exponent>},
      {"dry_multiplier", set_dry_float<&D::multiplier>},
      {"dry_base", set_dry_float<&D::base>},
      {"dry_allowed_length", set_dry_int<&D::allowed_length>},
      {"dry_penalty_last_n", set_dry_int<&D::last_n>},
      {"dry_sequence_breakers", set_breakers},
      {"mirostat", set_int<&S::mirostat>},
      {"mirostat_tau", set_float<&S::mirostat_tau>},
      {"mirostat_eta", set_float<&S::mirostat_eta>},
      {"min_keep", set_int<&S::min_keep>},
      {"logit_bias", set_bias},
      {"ignore_eos", set_ignore_eos},
      {"samplers", set_order},
      {"seed", set_seed},
  };
  return table;
}

}  // namespace

bool set_sampling_field(engine::SamplerSettings& settings, std::string_view field, const Json& value) {
  const auto found = setters().find(field);
  if (found == setters().end()) return false;
  found->second(settings, field, value);
  return true;
}

}  // namespace hk::cli
