// The self check as a whole and the choice of a level (see self_check.h).
#include "kernels/self_check.h"

#include <utility>

#include "kernels/self_check_parts.h"

namespace hk::kernels {

std::optional<Disagreement> self_check(const KernelTable& table) {
  if (auto wrong = check::vectors(table)) return wrong;
  if (auto wrong = check::matrices(table)) return wrong;
  return check::attention(table);
}

SoundLevel find_sound_level(std::span<const KernelTable* const> levels) {
  SoundLevel sound;
  for (const KernelTable* table : levels) {
    auto wrong = self_check(*table);
    if (!wrong) {
      sound.table = table;
      break;
    }
    sound.faults.push_back({table->level, std::move(*wrong)});
  }
  return sound;
}

}  // namespace hk::kernels
