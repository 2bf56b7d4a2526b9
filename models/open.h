// Opening a model: from a file's metadata and tensors to an engine::Model, or a refusal that says what is wrong.
//
// Layer: models; the only header of this folder that other folders need.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/generate/model.h"
#include "engine/runtime/thread_pool.h"
#include "kernels/kernels.h"

namespace hk::models {

/// Picks the family by general.architecture. Throws hk::Error, with file and name, for an unknown architecture, a
/// missing or senseless key, a missing or misshapen tensor, a storage type without a kernel. The model keeps the reader
/// alive and uses `threads`, which must outlive it.
std::unique_ptr<engine::Model> open(std::shared_ptr<engine::ModelReader> reader, engine::ThreadPool& threads);
/// The same with the kernels of a given level.
std::unique_ptr<engine::Model> open(std::shared_ptr<engine::ModelReader> reader, engine::ThreadPool& threads,
                                    const kernels::KernelTable& kernels);

/// Values of general.architecture that `open` knows.
std::vector<std::string_view> known_architectures();

}  // namespace hk::models
