// Metadata of a GGUF file, re-encoded once into the value encodings of .hk.
//
// Layer: engine/container. Integers become int64, floats float64, arrays the blobs of HK-FORMAT-NOTES.md; keys and
// texts stay in the mapping. What .hk cannot hold is refused by key name, not narrowed.
#pragma once

#include <cstdint>

#include "engine/container/gguf_cursor.h"
#include "engine/container/metadata.h"

namespace hk::engine {

/// Reads `count` pairs at the cursor. The result holds views into the mapping and owns what had to be re-encoded.
/// Throws hk::Error naming file and key.
Metadata read_gguf_metadata(GgufCursor& cursor, std::uint64_t count);

}  // namespace hk::engine
