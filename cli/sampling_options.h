// The sampling flags of every command that generates text, declared once.
//
// Layer: cli.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/generate/sampler_settings.h"

namespace CLI {
class App;
}

namespace hk::cli {

/// Flags as they were typed; `settings()` makes them what the engine takes. Must live as long as the parser.
class SamplingOptions {
 public:
  void add_to(CLI::App& command);
  /// Throws hk::Error (usage) that names the flag.
  engine::SamplerSettings settings() const;

 private:
  engine::SamplerSettings typed_;
  std::int64_t seed_ = -1;
  std::string order_;
  std::vector<std::string> biases_;
  std::vector<std::string> breakers_;
};

}  // namespace hk::cli
