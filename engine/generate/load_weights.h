// Brings the weights of an opened model to where they are to stay: the page cache, private memory, or locked.
//
// Layer: engine/generate. A mapped file works as it is; what this saves is the waiting page by page in the first
// answer. Addresses do not change, so it may come after the model was made and its memory planned.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/container/model_reader.h"
#include "engine/runtime/memory.h"
#include "engine/runtime/thread_pool.h"

namespace hk::engine {

enum class LoadMode : std::uint8_t {
  kMap,   ///< weights stay in the page cache, shared with other processes
  kRead,  ///< a copy in private memory, on huge pages where the system has them
  kLock,  ///< in the page cache, and the system may not drop them
};
enum class ReadAhead : std::uint8_t {
  kAuto,  ///< when parts of the file are not in the page cache and memory has room for it
  kOn,
  kOff,
};

struct LoadControl {
  std::function<bool()> cancelled;  ///< asked on the calling thread
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// Whether `kAuto` reads these files ahead.
bool wants_read_ahead(ModelReader& reader, const MachineMemory& memory);

/// Throws hk::Error: kInterrupted when cancelled, kResource when memory or the limit of locked memory do not suffice.
void load_weights(ModelReader& reader, LoadMode mode, ReadAhead read_ahead, const MachineMemory& memory,
                  ThreadPool& pool, const LoadControl& control);

}  // namespace hk::engine
