// Everything that decides how the next token is picked, with the defaults people know from llama.cpp.
//
// Layer: engine/generate. Plain data; `validate` says what is wrong with it. A value written as "off" here switches the
// step off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/generate/model.h"

namespace hk::engine {

/// The steps between logits and the draw, in their default order. Each either changes logits or removes candidates.
enum class SamplerStep : std::uint8_t {
  kPenalties,    ///< repeat, frequency and presence penalty
  kDry,          ///< "don't repeat yourself": penalty on continuing a repeated sequence
  kTopNSigma,    ///< keep logits >= max - n * standard deviation of all logits
  kTopK,         ///< keep the k largest
  kTypical,      ///< keep the tokens whose surprise is closest to the entropy, up to mass p
  kTopP,         ///< keep the most probable tokens up to mass p
  kMinP,         ///< keep tokens at least min_p times as probable as the best
  kXtc,          ///< exclude top choices: sometimes drop all but the least likely of the probable ones
  kTemperature,  ///< divide logits by the temperature, fixed or depending on the entropy
};

/// "penalties", "dry", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "xtc", "temperature".
std::string_view sampler_step_name(SamplerStep step);
/// Names separated by ';' or ','. Throws hk::Error (usage) for an unknown name or one given twice.
std::vector<SamplerStep> parse_sampler_order(std::string_view text);

struct DrySettings {
  float multiplier = 0;    ///< 0: off
  float base = 1.75f;      ///< penalty = multiplier * base ^ (length of the repetition - allowed_length)
  int allowed_length = 2;  ///< repetitions shorter than this cost nothing
  int last_n = -1;         ///< tokens looked at; 0: off, -1: all
  std::vector<std::string> breakers = {"\n", ":", "\"", "*"};  ///< a repetition does not extend across these texts
};

struct SamplerSettings {
  float temperature = 0.8f;    ///< 0: always the largest logit (lowest id on a tie); only bias and penalties apply then
  float dynamic_range = 0;     ///< 0: off; else the temperature lies in [temperature - range, temperature + range]
  float dynamic_exponent = 1;  ///< low + (high - low) * (entropy / largest possible entropy) ^ exponent
  int top_k = 40;              ///< <= 0: off
  float top_p = 0.95f;         ///< 1: off
  float min_p = 0.05f;         ///< 0: off
  float typical_p = 1;         ///< 1: off
  float top_n_sigma = -1;      ///< <= 0: off
  float xtc_probability = 0;   ///< 0: off
  float xtc_threshold = 0.1f;  ///< above 0.5 no two tokens can reach it: off
  int repeat_last_n = 64;      ///< window of the penalties; 0: off, -1: all
  float repeat_penalty = 1;    ///< 1: off; positive logits of seen tokens are divided by it, others multiplied
  float frequency_penalty = 0;  ///< subtracted once per occurrence
  float presence_penalty = 0;   ///< subtracted once when seen at all
  DrySettings dry;
  int mirostat = 0;           ///< 0: off, 1 or 2: replaces all removing steps by one that steers the surprise
  float mirostat_tau = 5;     ///< wanted surprise in bits
  float mirostat_eta = 0.1f;  ///< how fast it is steered
  int min_keep = 0;           ///< removing steps (not top_k) leave at least this many, and at least one
  std::vector<std::pair<TokenId, float>> logit_bias;  ///< added before everything else; -infinity bans a token
  bool ignore_eos = false;                            ///< bans the tokens that end generation
  std::vector<SamplerStep> order = {SamplerStep::kPenalties, SamplerStep::kDry,     SamplerStep::kTopNSigma,
                                    SamplerStep::kTopK,      SamplerStep::kTypical, SamplerStep::kTopP,
                                    SamplerStep::kMinP,      SamplerStep::kXtc,     SamplerStep::kTemperature};
  std::optional<std::uint64_t> seed;  ///< absent: a random one, see Sampler::seed

  /// Throws hk::Error (usage) that names the setting, the value and the allowed range.
  void validate() const;
};

}  // namespace hk::engine
