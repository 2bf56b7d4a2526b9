// What a model file looks like to the family it names: what it holds that the family does not use, or why it cannot
// run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/container/model_reader.h"

namespace hk::cli {

/// One sentence each; empty when everything in the file is used. Nothing is computed and no payload is read but small
/// vectors.
std::vector<std::string> family_remarks(const std::shared_ptr<engine::ModelReader>& reader);

}  // namespace hk::cli
