// What is read must not be what is written: one slip of a name would cost a model.
//
// Layer: cli.
#pragma once

#include <string>
#include <vector>

#include "engine/container/model_reader.h"

namespace hk::cli {

/// Throws hk::Error (usage) when `out` is the same regular file as one of `inputs`, whatever the names; "-" are the
/// standard streams.
void refuse_inputs(const std::string& out, const std::vector<std::string>& inputs);
/// The same for the files of a model, all shards.
void refuse_inputs(const std::string& out, engine::ModelReader& model);

}  // namespace hk::cli
