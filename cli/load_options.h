// Options about where a model's weights lie and where its threads run, the same for every command that loads a model.
//
// Layer: cli.
#pragma once

#include <optional>
#include <string>

#include "engine/container/model_reader.h"
#include "engine/generate/load_weights.h"
#include "engine/runtime/numa.h"
#include "engine/runtime/thread_pool.h"

namespace CLI {
class App;
}

namespace hk::cli {

struct LoadOptions {
  std::string load = "mmap";
  std::string read_ahead = "auto";
  std::string numa = "none";

  void add_to(CLI::App& command);
  /// Throws hk::Error (usage) naming the option.
  engine::LoadMode mode() const;

  /// Before threads and buffers are made: takes --numa to heart. Says on stderr what was done or refused.
  engine::NumaPlan place() const;
  /// Brings the weights to where --load wants them, with a progress line; Ctrl-C stops it. Throws hk::Error.
  void bring_weights(engine::ModelReader& reader, engine::ThreadPool& pool) const;
};

/// "hk-run: note: ..." on stderr.
void note(const std::string& text);

}  // namespace hk::cli
