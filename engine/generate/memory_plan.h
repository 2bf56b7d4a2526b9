// What a model will take, said before it takes it: weights, context, buffers, against what the machine and the user
// allow.
//
// Layer: engine/generate. Mapped weights are the system's to drop and read again, so they do not decide whether a model
// runs, only whether it runs well; private memory does. The context is what can be chosen: a default one is made to
// fit, one that was asked for is refused with the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/memory.h"

namespace hk::engine {

struct MemoryNeeds {
  std::uint64_t mapped_weights = 0;
  std::uint64_t private_weights = 0;  ///< read into memory or locked there, cannot be dropped; instead of mapped ones
  std::uint64_t scratch = 0;          ///< of a forward pass
  /// Of all sequences together when each holds so many positions; must not fall.
  std::function<std::uint64_t(std::size_t positions)> state;
};

struct MemoryLimits {
  std::uint64_t private_now = 0;       ///< what the process has already; part of `asked`
  std::optional<std::uint64_t> asked;  ///< --mem-limit: private memory at most
  MachineMemory machine{};
};

struct MemoryPlan {
  std::size_t context = 0;
  bool reduced = false;  ///< below what was wanted
  MemoryNeeds needs;
  MemoryLimits limits;
  std::optional<std::uint64_t> room;  ///< for scratch, state and private weights; absent when nobody knows
  std::string room_name;              ///< "the 8.0 GiB that are free", "--mem-limit 2.0 GiB less the 10.0 MiB in use"
  std::uint64_t state_at_first() const { return needs.state(1); }
  std::uint64_t state_when_full() const { return needs.state(context); }
  std::uint64_t private_when_full() const {
    return limits.private_now + needs.private_weights + needs.scratch + state_when_full();
  }
  /// "weights 770.0 MiB mapped, context of 4096 tokens 8.0 MiB at first and 128.0 MiB when full, ..."
  std::string text() const;
  /// What the person should know: a context that was cut, weights that will not stay in memory. One sentence each.
  std::vector<std::string> remarks() const;
};

/// `wanted` positions; when they were `asked` for they are not cut. Throws hk::Error (kResource), with the numbers and
/// what would fit, when that is too much.
MemoryPlan plan_memory(const MemoryNeeds& needs, const MemoryLimits& limits, std::size_t wanted, bool asked);

}  // namespace hk::engine
