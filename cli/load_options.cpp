// --load, --read-ahead and --numa.
#include "cli/load_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/streams.h"
#include "engine/runtime/memory.h"
#include "engine/runtime/topology.h"

namespace hk::cli {

void note(const std::string& text) { write_note(fmt::format("hk-run: note: {}", text)); }

void LoadOptions::add_to(CLI::App& command) {
  constexpr auto kGroup = "Model";
  command
      .add_option("--load", load,
                  "Where weights lie: mmap (the page cache, shared), read (private memory), lock (may not be dropped)")
      ->check(CLI::IsMember({"mmap", "read", "lock"}))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--read-ahead", read_ahead,
                  "Read a mapped file before the first token: auto (when it is not cached and fits), on, off")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str()
      ->group(kGroup);
  command
      .add_option("--numa", numa, "On machines with several memory nodes: none, distribute, isolate (docs/memory.md)")
      ->check(CLI::IsMember({"none", "distribute", "isolate"}))
      ->capture_default_str()
      ->group(kGroup);
}

engine::LoadMode LoadOptions::mode() const {
  if (load == "read") return engine::LoadMode::kRead;
  return load == "lock" ? engine::LoadMode::kLock : engine::LoadMode::kMap;
}

engine::NumaPlan LoadOptions::place() const {
  const auto policy = engine::parse_numa_policy(numa);
  if (policy == engine::NumaPolicy::kNone) return {};
  const auto nodes = engine::read_numa_nodes(engine::read_topology());
  auto plan = engine::plan_numa(policy, nodes);
  if (plan.why.empty()) {
    note(fmt::format("--numa {} changes nothing: there is one memory node", numa));
    return plan;
  }
  if (const auto refused = engine::apply_numa(plan); !refused.empty()) {
    note(refused);
    return {};
  }
  note(plan.why);
  return plan;
}

void LoadOptions::bring_weights(engine::ModelReader& reader, engine::ThreadPool& pool) const {
  const auto ahead = read_ahead == "on"    ? engine::ReadAhead::kOn
                     : read_ahead == "off" ? engine::ReadAhead::kOff
                                           : engine::ReadAhead::kAuto;
  // A chat asks for its answers only; while it loads, Ctrl-C ends the program.
  const InterruptGuard guard;
  Progress progress("reading the weights", reader.mapped_bytes());
  engine::load_weights(reader, mode(), ahead, engine::machine_memory(), pool,
                       {InterruptGuard::interrupted, [&](std::uint64_t done, std::uint64_t total) {
                          if (done != 0) progress.update(done, total);
                        }});
}

}  // namespace hk::cli
