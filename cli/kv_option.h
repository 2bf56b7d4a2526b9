// The option --kv of every command that runs a model: the element type of the key/value cache.
//
// Layer: cli.
#pragma once

#include <string>
#include <string_view>

#include "kernels/kv_type.h"

namespace hk::cli {

inline constexpr std::string_view kUsualKv = "f16";

/// Throws hk::Error (usage) with the names that there are.
kernels::KvType parse_kv(std::string_view name);
/// "Type of the key/value cache: f16, bf16, q8_0 or f32".
std::string kv_help();

}  // namespace hk::cli
