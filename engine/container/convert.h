// From any readable model to .hk: the same metadata and tensors, payloads carried byte for byte or stored as another
// type.
//
// Layer: engine/container. Streams from the mapped source, so memory does not grow with the model. Output files appear
// together when all of them are complete; a failure or an exception out of `progress` leaves what was there before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/container/model_reader.h"
#include "engine/container/requantize.h"

namespace hk::engine {

struct ConvertOptions {
  std::uint32_t alignment = 128;    ///< of payloads, 1 to 65535
  std::uint64_t shard_bytes = 0;    ///< payload bytes that one output file may hold; 0: one file
  std::optional<StorageType> type;  ///< store weight matrices as this (requantize.h); else as they are
  /// Called before, between and after pieces with payload bytes written and to write. Stops the conversion by throwing.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
  ParallelFor parallel;  ///< for re-encoding; absent: one thread
};

struct ConvertResult {
  std::vector<std::string> files;  ///< written, in shard order; an index json is the last
  std::uint64_t bytes = 0;         ///< size of all of them but the index
  std::size_t tensors = 0;
  std::size_t reencoded = 0;
  std::vector<std::string> notes;  ///< what was done otherwise than asked, one sentence each
};

/// Writes `model` to `path` (with shard_bytes set and more than one file needed: STEM-00001-of-0000N.hk and
/// STEM.hk.index.json, STEM being `path` without ".hk"). Throws hk::Error naming the tensor or key that cannot be
/// stored.
ConvertResult convert_model(const ModelReader& model, const std::string& path, const ConvertOptions& options);

}  // namespace hk::engine
