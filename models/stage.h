// What the stages of one forward pass share: the rows of the chunk, where each stands, and the means to compute.
//
// Layer: models. Filled by Pass at the start of a chunk; mixers and feed-forwards read it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/runtime/thread_pool.h"
#include "kernels/kernels.h"
#include "models/attend.h"
#include "models/product.h"
#include "models/rows.h"
#include "models/spec.h"

namespace hk::models {

struct RowPlace {
  KvSequence* sequence;
  std::size_t position;
};

/// cos and sin of every row's position for one RopeTable.
struct Angles {
  RowBuffer cos_buffer, sin_buffer;
  Rows cos, sin;
};

struct Stage {
  Stage(const ModelSpec& model, const kernels::KernelTable& table, engine::ThreadPool& threads)
      : spec(model), kernels(table), pool(threads), products(table, threads), angles(model.ropes.size()) {}

  void norm(const NormSpec& norm, const float* x, std::size_t n, float* out) const {
    if (norm.kind == NormKind::kLayer) {
      kernels.layer_norm(x, norm.weight, norm.bias, norm.epsilon, n, out);
    } else {
      kernels.rms_norm(x, norm.weight, norm.epsilon, n, out);
    }
    if (norm.kind == NormKind::kRms && norm.bias != nullptr) kernels.add(out, norm.bias, n);
  }

  const ModelSpec& spec;
  const kernels::KernelTable& kernels;
  engine::ThreadPool& pool;
  Products products;

  std::span<const Segment> segments;
  std::vector<RowPlace> places;
  std::vector<Angles> angles;
};

}  // namespace hk::models
