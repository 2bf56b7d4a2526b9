// Profiles as a trace file: the Chrome trace format, which chrome://tracing, Perfetto and speedscope open.
//
// Layer: cli.
#pragma once

#include <string>

#include "cli/profile/profile_options.h"

namespace hk::cli {

/// One process of the trace a part; passes hold layers, layers their halves, these the stages. Says on stderr when not
/// all events were kept. Throws hk::Error when the file cannot be written.
void write_trace(const std::string& path, const ProfiledParts& parts);

}  // namespace hk::cli
