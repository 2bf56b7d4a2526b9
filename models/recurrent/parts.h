// Sharing out recurrences among the workers: a sequence's rows go in order, its heads or channels side by side.
//
// Layer: models.
#pragma once

#include <algorithm>
#include <cstddef>

#include "models/stage.h"

namespace hk::models {

/// Calls f(segment, first, count) for runs of up to `part` of the `n` heads or channels of every segment.
template <typename F>
void for_segment_parts(Stage& stage, std::size_t n, std::size_t part, F&& f) {
  const std::size_t parts = (n + part - 1) / part;
  const std::size_t tasks = parts * stage.segments.size();
  const auto run = [&](std::size_t task) {
    const std::size_t first = task % parts * part;
    f(stage.segments[task / parts], first, std::min(part, n - first));
  };
  if (stage.pool.rehearses()) return;
  if (tasks == 1 || stage.pool.threads() == 1) {
    for (std::size_t task = 0; task < tasks; ++task) run(task);
    return;
  }
  stage.pool.run(tasks, [&](std::size_t task, int) { run(task); });
}

/// ln(1 + e^x), without overflow.
float softplus(float x);
float sigmoid(float x);

}  // namespace hk::models
