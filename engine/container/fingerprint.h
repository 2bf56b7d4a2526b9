// A number that tells models apart without reading all their weights.
//
// Layer: engine/container.
#pragma once

#include <cstdint>

#include "engine/container/model_reader.h"

namespace hk::engine {

/// Of all metadata, the table of tensors and some bytes of each tensor. Two files with the same number are the same
/// model unless weights were changed in places that are not looked at. For files that stay on this machine.
std::uint64_t model_fingerprint(const ModelReader& reader);

}  // namespace hk::engine
