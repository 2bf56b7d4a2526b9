// Base64 (RFC 4648, with padding): how bytes that are no UTF-8 travel in JSON.
//
// Layer: cli.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hk::cli {

std::string to_base64(std::string_view bytes);
/// Nothing when `text` is not base64. Padding may be left out.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace hk::cli
