// Adds up and compares (see memory_plan.h).
#include "engine/generate/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/memory_text.h"

namespace hk::engine {
namespace {

// Contexts are cut in steps of a page of the cache.
constexpr std::size_t kStep = 256;
// A default context below this is no help to anybody: better to say that there is no memory.
constexpr std::size_t kSmallestUseful = 1024;
// Part of the free memory that is left to everybody else: page tables, the page cache under the weights, other
// programs.
constexpr std::uint64_t kLeftToOthers = 16;

std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

void find_room(MemoryPlan& plan) {
  const MemoryLimits& limits = plan.limits;
  if (const auto usable = limits.machine.usable()) {
    plan.room = *usable - *usable / kLeftToOthers;
    if (limits.machine.available == usable)
      plan.room_name = fmt::format("{} that are free on this machine", memory_text(*plan.room));
    else if (limits.machine.process_left == usable)
      plan.room_name = fmt::format("{} that the limits of this process leave (ulimit -v, -d)", memory_text(*plan.room));
    else
      plan.room_name = fmt::format("{} that the control group's limit of {} leaves", memory_text(*plan.room),
                                   memory_text(limits.machine.cgroup_limit.value_or(0)));
  }
  if (!limits.asked) return;
  const std::uint64_t left = *limits.asked - std::min(*limits.asked, limits.private_now);
  if (plan.room && *plan.room <= left) return;
  plan.room = left;
  plan.room_name = fmt::format("{} that --mem-limit {} leaves beside the {} in use", memory_text(left),
                               memory_text(*limits.asked), memory_text(limits.private_now));
}

}  // namespace

MemoryPlan plan_memory(const MemoryNeeds& needs, const MemoryLimits& limits, std::size_t wanted, bool asked) {
  MemoryPlan plan;
  plan.context = wanted;
  plan.needs = needs;
  plan.limits = limits;
  find_room(plan);
  if (!plan.room) return plan;
  const auto needed = [&](std::size_t context) {
    return add(add(needs.private_weights, needs.scratch), needs.state(context));
  };
  if (needed(wanted) <= *plan.room) return plan;

  // The largest number of whole steps that fits.
  std::size_t fits = 0, too_many = wanted / kStep + 1;
  while (fits + 1 < too_many) {
    const std::size_t middle = fits + (too_many - fits) / 2;
    (needed(middle * kStep) <= *plan.room ? fits : too_many) = middle;
  }
  const std::size_t context = fits * kStep;
  if (!asked && context >= std::min(kSmallestUseful, wanted)) {
    plan.context = context;
    plan.reduced = true;
    return plan;
  }
  const std::size_t told = asked ? wanted : std::min(kSmallestUseful, wanted);
  std::string sentence =
      fmt::format("not enough memory: a context of {} tokens takes {}", told, memory_text(needs.state(told)));
  if (needs.scratch != 0) sentence += fmt::format(", a forward pass {}", memory_text(needs.scratch));
  if (needs.private_weights != 0) sentence += fmt::format(", the weights {}", memory_text(needs.private_weights));
  sentence += fmt::format("; together more than the {}", plan.room_name);
  if (asked && context != 0) sentence += fmt::format("; a context of {} tokens would fit (-c {})", context, context);
  throw Error(sentence, ErrorKind::kResource);
}

std::string MemoryPlan::text() const {
  std::string out = needs.private_weights == 0
                        ? fmt::format("weights {} mapped", memory_text(needs.mapped_weights))
                        : fmt::format("weights {} held in memory", memory_text(needs.private_weights));
  out += fmt::format(", context of {} tokens {} at first and {} when full, forward pass {}", context,
                     memory_text(state_at_first()), memory_text(state_when_full()), memory_text(needs.scratch));
  out += fmt::format("; private memory when full {}", memory_text(private_when_full()));
  if (room) out += fmt::format(", of {}", room_name);
  if (limits.machine.total) out += fmt::format("; the machine has {}", memory_text(*limits.machine.total));
  if (limits.machine.cgroup_limit)
    out += fmt::format(", the control group {}", memory_text(*limits.machine.cgroup_limit));
  return out;
}

std::vector<std::string> MemoryPlan::remarks() const {
  std::vector<std::string> sentences;
  if (reduced)
    sentences.push_back(fmt::format("the context is cut to {} tokens ({}): more does not fit into the {}", context,
                                    memory_text(state_when_full()), room_name));
  std::optional<std::uint64_t> memory = limits.machine.total;
  if (limits.machine.cgroup_limit)
    memory = std::min(*limits.machine.cgroup_limit, memory.value_or(*limits.machine.cgroup_limit));
  if (memory && add(needs.mapped_weights, private_when_full()) > *memory)
    sentences.push_back(
        fmt::format("weights of {} and {} of private memory are more than the memory of {}: parts of the weights will "
                    "be read from disk again and again",
                    memory_text(needs.mapped_weights), memory_text(private_when_full()), memory_text(*memory)));
  return sentences;
}

}  // namespace hk::engine
