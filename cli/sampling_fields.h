// Sampling settings by name: fields of a request, of a model's metadata, and what /set takes.
//
// Layer: cli.
#pragma once

#include <string_view>

#include "cli/json_fields.h"
#include "engine/generate/sampler_settings.h"

namespace hk::cli {

/// Sets what `field` names; false when it is no sampling setting. Throws hk::Error for a value of the wrong kind.
bool set_sampling_field(engine::SamplerSettings& settings, std::string_view field, const Json& value);
/// The name without an alias: "temperature" for "temp"; "" when it is no sampling setting.
std::string_view sampling_field_name(std::string_view field);
/// All settings but the seed by their names, in the order in which people look for them.
Json sampling_values(const engine::SamplerSettings& settings);

}  // namespace hk::cli
