// --profile and --profile-json, and the parts of a run that they tell of.
//
// Layer: cli.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "cli/bench/peaks.h"
#include "engine/runtime/profile.h"

namespace CLI {
class App;
}

namespace hk::cli {

/// A stretch of a run and what was heard in it: the prompt, what was generated, one test of a benchmark.
struct ProfiledPart {
  std::string name;
  engine::Profile profile;
  std::size_t tokens = 0;
  double seconds = 0;
  BenchPeaks peaks{};

  ProfiledPart(std::string part_name, std::size_t keep_events) : name(std::move(part_name)), profile(keep_events) {}
};
/// A profile listens where it was made, so parts are not moved.
using ProfiledParts = std::deque<ProfiledPart>;

struct ProfileOptions {
  bool table = false;
  std::optional<std::string> json;

  void add_to(CLI::App& command);
  bool wanted() const { return table || json; }
  /// Events worth keeping one by one.
  std::size_t keep_events() const;
  /// Tables on stderr, the trace into its file. Throws hk::Error when it cannot be written.
  void report(const ProfiledParts& parts) const;
};

}  // namespace hk::cli
