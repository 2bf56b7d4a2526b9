// Where this process sits in the control groups, version 1 and 2, and the files there from our group up to the mount.
//
// Layer: engine/runtime. A limit of a parent binds the child too, so a reader of limits walks all of these folders.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hk::engine {

enum class CgroupVersion { kV1, kV2 };

struct CgroupFolders {
  CgroupVersion version;
  std::vector<std::filesystem::path> folders;  ///< own group first, the mount point last; all below the injected root
};

/// The hierarchies that can hold limits of `controller` ("cpu", "memory"): of version 1 when it is mounted there, and
/// version 2.
std::vector<CgroupFolders> cgroup_folders(const std::filesystem::path& root, std::string_view controller);

/// First line of a small file without the line break; nullopt when it cannot be read.
std::optional<std::string> read_line(const std::filesystem::path& path);
/// A decimal number at the start of `text`; nullopt when there is none.
std::optional<long long> parse_number(std::string_view text);

}  // namespace hk::engine
