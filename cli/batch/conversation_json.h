// Messages of a request as a chat template takes them.
//
// Layer: cli/batch.
#pragma once

#include <string>

#include "cli/json_fields.h"

namespace hk::cli {

/// The list as JSON, contents that come in parts joined to one text. Throws hk::Error for what is no conversation and
/// for parts that are no text.
std::string plain_messages(const Json& messages);

}  // namespace hk::cli
