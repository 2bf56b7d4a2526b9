// Sampling settings as fields of a request.
//
// Layer: cli/batch.
#pragma once

#include <string_view>

#include "cli/batch/json_fields.h"
#include "engine/generate/sampler_settings.h"

namespace hk::cli {

/// Sets what `field` names; false when it is no sampling setting. Throws hk::Error for a value of the wrong kind.
bool set_sampling_field(engine::SamplerSettings& settings, std::string_view field, const Json& value);

}  // namespace hk::cli
