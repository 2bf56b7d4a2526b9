// Sets of shards: how their files are named, and the index json that lists which tensor lies in which file.
//
// Layer: engine/container. HK-FORMAT-NOTES.md, "Shards".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hk::engine {

/// "<stem>-00002-of-00005.hk" for index 1 of 5.
std::string hk_shard_name(std::string_view stem, std::uint32_t index, std::uint32_t count);
/// The stem when `name` is that of shard `index` of `count`.
std::optional<std::string> hk_shard_stem(std::string_view name, std::uint32_t index, std::uint32_t count);

struct HkIndex {
  std::vector<std::string> files;              ///< names without folder, sorted, at least one
  std::map<std::string, std::string> tensors;  ///< tensor to file
};

/// Does the file begin like json? False when it cannot be read; opening it will say why.
bool is_hk_index(const std::string& path);
/// Throws hk::Error naming the file and what is wrong in it.
HkIndex read_hk_index(const std::string& path);

/// Writes "<stem>.hk.index.json" for a set: which tensor lies in which file (names without folder).
void write_hk_index(const std::string& path, std::span<const std::pair<std::string, std::string>> tensor_files);

}  // namespace hk::engine
