// The tables of sampling fields; names are those of the flags and of other programs.
#include "cli/sampling_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace hk::cli {
namespace {

using engine::SamplerSettings;
using Setter = void (*)(SamplerSettings& settings, std::string_view field, const Json& value);

constexpr auto kLargestInt = std::numeric_limits<int>::max();

/// Where a field lies: in the settings or in their DRY part.
template <typename Settings, typename T>
auto& field_of(Settings& settings, T SamplerSettings::*member) {
  return settings.*member;
}
template <typename Settings, typename T>
auto& field_of(Settings& settings, T engine::DrySettings::*member) {
  return settings.dry.*member;
}

template <auto Member>
void set_float(SamplerSettings& settings, std::string_view field, const Json& value) {
  field_of(settings, Member) = static_cast<float>(field_number(value, field));
}

template <auto Member>
void set_int(SamplerSettings& settings, std::string_view field, const Json& value) {
  field_of(settings, Member) = static_cast<int>(field_integer(value, field, -1, kLargestInt));
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

template <auto Member>
Json get(const SamplerSettings& settings) {
  const auto& value = field_of(settings, Member);
  if constexpr (std::is_same_v<decltype(value), const float&>)
    return Json::parse(fmt::format("{}", value));  // 0.8, not the double nearest to the float
  else
    return value;
}

Json get_bias(const SamplerSettings& settings) {
  Json out = Json::object();
  for (const auto& [id, bias] : settings.logit_bias) {
    const std::string name = std::to_string(id);
    if (std::isinf(bias)) {
      out[name] = "-inf";
    } else {
      out[name] = bias;
    }
  }
  return out;
}

Json get_order(const SamplerSettings& settings) {
  Json out = Json::array();
  for (const auto step : settings.order) out.push_back(engine::sampler_step_name(step));
  return out;
}

using S = SamplerSettings;
using D = engine::DrySettings;

struct Field {
  std::string_view name;
  Setter set;
  Json (*get)(const SamplerSettings& settings);
};

constexpr Field kFields[] = {
    {"temperature", set_float<&S::temperature>, get<&S::temperature>},
    {"top_k", set_int<&S::top_k>, get<&S::top_k>},
    {"top_p", set_float<&S::top_p>, get<&S::top_p>},
    {"min_p", set_float<&S::min_p>, get<&S::min_p>},
    {"typical_p", set_float<&S::typical_p>, get<&S::typical_p>},
    {"top_n_sigma", set_float<&S::top_n_sigma>, get<&S::top_n_sigma>},
    {"xtc_probability", set_float<&S::xtc_probability>, get<&S::xtc_probability>},
    {"xtc_threshold", set_float<&S::xtc_threshold>, get<&S::xtc_threshold>},
    {"repeat_last_n", set_int<&S::repeat_last_n>, get<&S::repeat_last_n>},
    {"repeat_penalty", set_float<&S::repeat_penalty>, get<&S::repeat_penalty>},
    {"frequency_penalty", set_float<&S::frequency_penalty>, get<&S::frequency_penalty>},
    {"presence_penalty", set_float<&S::presence_penalty>, get<&S::presence_penalty>},
    {"dynatemp_range", set_float<&S::dynamic_range>, get<&S::dynamic_range>},
    {"dynatemp_exponent", set_float<&S::dynamic_exponent>, get<&S::dynamic_exponent>},
    {"dry_multiplier", set_float<&D::multiplier>, get<&D::multiplier>},
    {"dry_base", set_float<&D::base>, get<&D::base>},
    {"dry_allowed_length", set_int<&D::allowed_length>, get<&D::allowed_length>},
    {"dry_penalty_last_n", set_int<&D::last_n>, get<&D::last_n>},
    {"dry_sequence_breakers", set_breakers, get<&D::breakers>},
    {"mirostat", set_int<&S::mirostat>, get<&S::mirostat>},
    {"mirostat_tau", set_float<&S::mirostat_tau>, get<&S::mirostat_tau>},
    {"mirostat_eta", set_float<&S::mirostat_eta>, get<&S::mirostat_eta>},
    {"min_keep", set_int<&S::min_keep>, get<&S::min_keep>},
    {"logit_bias", set_bias, get_bias},
    {"ignore_eos", set_ignore_eos, get<&S::ignore_eos>},
    {"samplers", set_order, get_order},
    {"seed", set_seed, nullptr},
};

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"temp", "temperature"},
    {"repetition_penalty", "repeat_penalty"},
};

const std::unordered_map<std::string_view, const Field*>& fields() {
  static const auto table = [] {
    std::unordered_map<std::string_view, const Field*> map;
    for (const Field& field : kFields) map.emplace(field.name, &field);
    for (const auto& [alias, name] : kAliases) map.emplace(alias, map.at(name));
    return map;
  }();
  return table;
}

}  // namespace

bool set_sampling_field(engine::SamplerSettings& settings, std::string_view field, const Json& value) {
  const auto found = fields().find(field);
  if (found == fields().end()) return false;
  found->second->set(settings, field, value);
  return true;
}

std::string_view sampling_field_name(std::string_view field) {
  const auto found = fields().find(field);
  return found == fields().end() ? std::string_view{} : found->second->name;
}

Json sampling_values(const engine::SamplerSettings& settings) {
  Json out = Json::object();
  for (const Field& field : kFields)
    if (field.get != nullptr) out[std::string(field.name)] = field.get(settings);
  return out;
}

}  // namespace hk::cli
