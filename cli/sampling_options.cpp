// Sampling flags: names and defaults as people know them from other programs.
#include "cli/sampling_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/sampling_fields.h"

namespace hk::cli {
namespace {

// Metadata keys of a model's own sampling defaults, and the settings they are.
constexpr std::pair<std::string_view, std::string_view> kFileSettings[] = {
    {"general.sampling.sequence", "samplers"},
    {"general.sampling.top_k", "top_k"},
    {"general.sampling.top_p", "top_p"},
    {"general.sampling.min_p", "min_p"},
    {"general.sampling.xtc_probability", "xtc_probability"},
    {"general.sampling.xtc_threshold", "xtc_threshold"},
    {"general.sampling.temp", "temperature"},
    {"general.sampling.penalty_last_n", "repeat_last_n"},
    {"general.sampling.penalty_repeat", "repeat_penalty"},
    {"general.sampling.mirostat", "mirostat"},
    {"general.sampling.mirostat_tau", "mirostat_tau"},
    {"general.sampling.mirostat_eta", "mirostat_eta"},
};

Json file_value(const engine::Metadata& metadata, std::string_view key) {
  switch (metadata.find(key)->type) {
    case engine::ValueType::kString:
      return Json(*metadata.string(key));
    case engine::ValueType::kInt64:
      return Json(*metadata.integer(key));
    default:
      return Json(*metadata.number(key));
  }
}

// "15043+1.5", "15043-inf", "15043=-2".
std::pair<engine::TokenId, float> parse_bias(std::string_view text) {
  const auto refuse = [&] {
    return Error(
        fmt::format("--logit-bias: '{}' is no bias; expected a token id, + or -, and a number or inf (15043-2.5)",
                    text),
        ErrorKind::kUsage);
  };
  engine::TokenId id = 0;
  const auto [after_id, id_problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  std::string_view rest = text.substr(static_cast<std::size_t>(after_id - text.data()));
  if (id_problem != std::errc{} || rest.empty()) throw refuse();
  const char sign = rest.front();
  if (sign != '+' && sign != '-' && sign != '=') throw refuse();
  rest.remove_prefix(1);
  if (rest == "inf" && sign == '-') return {id, -std::numeric_limits<float>::infinity()};
  float value = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (problem != std::errc{} || end != rest.data() + rest.size() || rest.empty()) throw refuse();
  return {id, sign == '-' ? -value : value};
}

}  // namespace

void SamplingOptions::add_to(CLI::App& command) {
  constexpr auto kGroup = "Sampling";
  auto& s = typed_;
  const auto remember = [&](const char* field, CLI::Option* typed) {
    options_.emplace_back(field, typed->group(kGroup));
    return typed;
  };
  const auto option = [&](const char* field, const char* names, auto& value, const char* help) {
    remember(field, command.add_option(names, value, help)->capture_default_str());
  };
  option("temperature", "--temp,--temperature", s.temperature, "Temperature; 0 always takes the most probable token");
  option("top_k", "--top-k", s.top_k, "Keep the K most probable tokens; 0: off");
  option("top_p", "--top-p", s.top_p, "Keep the most probable tokens up to this probability together; 1: off");
  option("min_p", "--min-p", s.min_p, "Keep tokens at least this many times as probable as the best; 0: off");
  option("seed", "--seed,-s", seed_, "Random numbers; the same seed gives the same text; -1: a new one each time");
  option("repeat_penalty", "--repeat-penalty", s.repeat_penalty, "Make tokens of the latest text less likely; 1: off");
  option("repeat_last_n", "--repeat-last-n", s.repeat_last_n, "How many tokens the penalties look at; -1: all, 0: off");
  option("frequency_penalty", "--frequency-penalty", s.frequency_penalty,
         "Subtracted from a token's logit for each time it was used");
  option("presence_penalty", "--presence-penalty", s.presence_penalty,
         "Subtracted from the logit of a token that was used");
  option("typical_p", "--typical-p,--typical", s.typical_p,
         "Locally typical sampling: keep the tokens nearest the entropy; 1: off");
  option("top_n_sigma", "--top-n-sigma", s.top_n_sigma,
         "Keep logits within N standard deviations of the largest; <= 0: off");
  option("xtc_probability", "--xtc-probability", s.xtc_probability,
         "Chance to drop all but the least of the probable tokens; 0: off");
  option("xtc_threshold", "--xtc-threshold", s.xtc_threshold, "Probability from which XTC calls a token probable");
  option("dynatemp_range", "--dynatemp-range", s.dynamic_range,
         "Let the temperature vary by this much with the entropy; 0: off");
  option("dynatemp_exponent", "--dynatemp-exp", s.dynamic_exponent, "Exponent of the dynamic temperature");
  option("dry_multiplier", "--dry-multiplier", s.dry.multiplier,
         "Strength of the penalty on repeated sequences (DRY); 0: off");
  option("dry_base", "--dry-base", s.dry.base, "Growth of the DRY penalty per repeated token");
  option("dry_allowed_length", "--dry-allowed-length", s.dry.allowed_length,
         "Longest repetition that DRY does not mind");
  option("dry_penalty_last_n", "--dry-penalty-last-n", s.dry.last_n, "How many tokens DRY looks at; -1: all, 0: off");
  remember("dry_sequence_breakers",
           command
               .add_option("--dry-sequence-breaker", breakers_,
                           "Text that ends a repetition; replaces the default ones; 'none': none")
               ->take_all());
  option("mirostat", "--mirostat", s.mirostat, "Steer the surprise instead of cutting: 0 off, 1 or 2 the version");
  option("mirostat_tau", "--mirostat-ent", s.mirostat_tau, "Surprise in bits that Mirostat aims at");
  option("mirostat_eta", "--mirostat-lr", s.mirostat_eta, "How fast Mirostat steers");
  option("min_keep", "--min-keep", s.min_keep, "Tokens that a cut leaves at least");
  remember("logit_bias",
           command.add_option("--logit-bias", biases_, "Change a token's logit: 15043+1.5, 15043-inf")->take_all());
  remember("ignore_eos",
           command.add_flag("--ignore-eos", s.ignore_eos, "Never end: the tokens that end a text are not taken"));
  for (const auto step : s.order) order_ += (order_.empty() ? "" : ";") + std::string(engine::sampler_step_name(step));
  option("samplers", "--samplers", order_, "The steps and their order");
}

engine::SamplerSettings SamplingOptions::settings() const {
  engine::SamplerSettings settings = typed_;
  if (seed_ >= 0) settings.seed = static_cast<std::uint64_t>(seed_);
  settings.order = engine::parse_sampler_order(order_);
  for (const auto& bias : biases_) settings.logit_bias.push_back(parse_bias(bias));
  if (!breakers_.empty()) settings.dry.breakers = breakers_;
  std::erase(settings.dry.breakers, "none");
  settings.validate();
  return settings;
}

bool SamplingOptions::given(std::string_view field) const {
  for (const auto& [name, option] : options_)
    if (name == field) return option->count() > 0;
  return false;
}

SettingOrigin SamplingOptions::origin(std::string_view field, const engine::ModelReader& reader) const {
  if (given(field)) return SettingOrigin::kGiven;
  for (const auto& [key, name] : kFileSettings)
    if (name == field && reader.metadata().contains(key)) return SettingOrigin::kFile;
  return SettingOrigin::kDefault;
}

engine::SamplerSettings SamplingOptions::settings(const engine::ModelReader& reader) const {
  engine::SamplerSettings merged = settings();
  for (const auto& [key, field] : kFileSettings) {
    if (given(field) || !reader.metadata().contains(key)) continue;
    try {
      set_sampling_field(merged, field, file_value(reader.metadata(), key));
      merged.validate();
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}: {}; the flag for it overrides the file", reader.path(), key, error.what()));
    }
  }
  return merged;
}

}  // namespace hk::cli
