// Known-answer check of every kernel of an ISA level, and the choice of a level that passes it.
//
// Layer: kernels. Takes some milliseconds and no file: made-up weights and values go through the level's kernels and
// through plain formulas in double, compiled for the baseline. It is for machines that we have never seen: an emulator
// or hypervisor that gets an instruction wrong, a compiler that did, a processor with a fault. The tests look closer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"

namespace hk::kernels {

struct Disagreement {
  std::string kernel;  ///< "matmul q4_k", "rms_norm"
  std::string detail;  ///< "row 3, activation 0: 1.5 instead of 1.25"
};

/// The first kernel of the level whose result is not the right one; nullopt when all agree.
std::optional<Disagreement> self_check(const KernelTable& table);

struct LevelFault {
  std::string_view level;
  Disagreement disagreement;
};
struct SoundLevel {
  const KernelTable* table = nullptr;  ///< null when no level passes
  std::vector<LevelFault> faults;      ///< of the levels that were tried before, in that order
};
/// The first of `levels` (best first, as from usable_levels()) that passes.
SoundLevel find_sound_level(std::span<const KernelTable* const> levels);

}  // namespace hk::kernels
