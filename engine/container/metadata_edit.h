// Changes metadata pairs of an existing .hk file; a kill at any point leaves the old metadata or the new.
//
// Layer: engine/container. How: the new section is never written over the old one.
//  - Without an appendix it goes behind the file's end, is synced, and one write of the header (count, offset and size
//  lie in
//    24 neighbouring bytes) makes readers see it. Costs the section, not the model, and a program that has the file
//    mapped keeps a valid view. The old section stays as unused bytes; `convert` makes a compact file.
//  - With an appendix nothing may stand behind the records, which end with the file. So the model is copied to a
//  temporary
//    file (by reference where the file system can) with the section between payloads and records, and renamed.
// Rejected: overwriting the old section when the new one fits (a kill would leave a mix, and running readers see it),
// and using gaps left by earlier edits (a running reader may still look there).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/container/metadata.h"

namespace hk::engine {

struct MetadataChange {
  std::string key;
  std::optional<ValueType> type;  ///< nullopt: remove the key
  std::vector<std::byte> value;   ///< in the encoding of the container
};

/// Applies all changes at once. A key that exists keeps its place, a new one goes to the end. Throws hk::Error when a
/// key to be removed is absent or a value is not what its type says. Returns remarks for the user.
std::vector<std::string> edit_metadata(const std::string& path, std::span<const MetadataChange> changes);

}  // namespace hk::engine
