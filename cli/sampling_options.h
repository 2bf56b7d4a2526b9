// The sampling flags of every command that generates text, declared once.
//
// Layer: cli.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/generate/sampler_settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hk::cli {

/// Where the value of a setting comes from.
enum class SettingOrigin { kDefault, kFile, kGiven };

/// Flags as they were typed; `settings()` makes them what the engine takes. Must live as long as the parser.
class SamplingOptions {
 public:
  void add_to(CLI::App& command);
  /// Throws hk::Error (usage) that names the flag.
  engine::SamplerSettings settings() const;
  /// The same with the model's own defaults (general.sampling.*) for flags that were not typed. Throws hk::Error that
  /// names file and key.
  engine::SamplerSettings settings(const engine::ModelReader& reader) const;
  /// `field` as in sampling_fields.h.
  SettingOrigin origin(std::string_view field, const engine::ModelReader& reader) const;

 private:
  bool given(std::string_view field) const;

  std::vector<std::pair<std::string, const CLI::Option*>> options_;  // by the names of sampling_fields.h
  engine::SamplerSettings typed_;
  std::int64_t seed_ = -1;
  std::string order_;
  std::vector<std::string> biases_;
  std::vector<std::string> breakers_;
};

}  // namespace hk::cli
