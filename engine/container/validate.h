// Everything that can be checked about a model file, for `verify`: goes on after a fault and lists all of them.
//
// Layer: engine/container. Opening a file already refused what cannot be walked; this looks at the rest: values of the
// metadata, tensors that cannot be used, payloads that overlap, what payloads say about themselves, scales that are no
// numbers, the lineage chain.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/container/model_reader.h"

namespace hk::engine {

struct Finding {
  bool wrong = true;  ///< false: worth telling, the file is valid all the same
  std::string text;   ///< one sentence with file and tensor or key
};

struct ValidateOptions {
  /// Look into the payloads: reads the whole file.
  bool payloads = true;
  /// Called with payload bytes done and in total; may throw to stop.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

std::vector<Finding> validate(const ModelReader& reader, const ValidateOptions& options = {});

/// Scales and values of one tensor that are infinite or no number where the format leaves no room for it; appends what
/// it finds. Part of validate().
void check_values(const ModelReader& reader, const TensorView& tensor, std::vector<Finding>& findings,
                  const std::function<void(std::uint64_t bytes)>& progress);

}  // namespace hk::engine
