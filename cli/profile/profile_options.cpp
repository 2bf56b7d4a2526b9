// --profile and --profile-json.
#include "cli/profile/profile_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/profile/profile_table.h"
#include "cli/profile/trace_file.h"
#include "cli/streams.h"

namespace hk::cli {
namespace {

// A model of 32 layers makes some 500 events a token; what viewers of traces take without trouble is a few 100,000.
constexpr std::size_t kMostEvents = 400000;

}  // namespace

void ProfileOptions::add_to(CLI::App& command) {
  command
      .add_flag("--profile", table,
                "Say on stderr what took how long: each kind of stage and kernel, against the "
                "machine's limits measured right after")
      ->group("Profile");
  command.add_option("--profile-json", json, "Write every stage to this file, for a trace viewer (docs/bench.md)")
      ->group("Profile");
}

std::size_t ProfileOptions::keep_events() const { return json ? kMostEvents : 0; }

void ProfileOptions::report(const ProfiledParts& parts) const {
  if (table) {
    for (const ProfiledPart& part : parts) write_aside(profile_table(part));
  }
  if (json) write_trace(*json, parts);
}

}  // namespace hk::cli
