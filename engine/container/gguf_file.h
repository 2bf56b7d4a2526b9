// One GGUF file: header, metadata and tensor table, checked; the step from one file to a model is gguf_reader.h.
//
// Layer: engine/container.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/container/mapped_file.h"
#include "engine/container/model_reader.h"

namespace hk::engine {

struct GgufFile {
  std::uint32_t version = 0;
  std::uint64_t alignment = 0;
  Metadata metadata;
  std::vector<TensorView> tensors;
  std::uint64_t data_end = 0;  ///< where the last payload ends
};

/// Throws hk::Error naming the file and what is wrong. `shard` goes into every tensor. Results are views into `file`.
GgufFile parse_gguf(const MappedFile& file, std::uint32_t shard);

}  // namespace hk::engine
