// Finds the cgroup folders of this process from /proc/self/cgroup and /proc/self/mountinfo.
#include "engine/runtime/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace hk::engine {
namespace {

namespace fs = std::filesystem;

struct Mount {
  CgroupVersion version;
  std::string group_root;  // which group of the hierarchy the mount point shows
  fs::path point;
};

bool list_contains(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == item) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// mountinfo writes blanks, tabs, line breaks and backslashes as three octal digits.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t k) { return text[i + k] >= '0' && text[i + k] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && octal(1) && octal(2) && octal(3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// "31 23 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu": root and mount point before the dash, file
// system type and its options after it.
std::vector<Mount> cgroup_mounts(const fs::path& root, std::string_view controller) {
  std::vector<Mount> mounts;
  std::ifstream in(root / "proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream left(line.substr(0, dash)), right(line.substr(dash + 3));
    std::string skip, group_root, point, type, source, options;
    left >> skip >> skip >> skip >> group_root >> point;
    right >> type >> source >> options;
    if (type == "cgroup2")
      mounts.push_back({CgroupVersion::kV2, unescape(group_root), unescape(point)});
    else if (type == "cgroup" && list_contains(options, controller))
      mounts.push_back({CgroupVersion::kV1, unescape(group_root), unescape(point)});
  }
  return mounts;
}

// "4:memory:/some/group" (version 1) or "0::/some/group" (version 2).
std::optional<std::string> own_group(const fs::path& root, CgroupVersion version, std::string_view controller) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool wanted =
        version == CgroupVersion::kV2 ? line.starts_with("0::") : list_contains(controllers, controller);
    if (wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The part of `group` below `group_root`. A group outside of what is mounted (another namespace: "/../..") shows as the
// mount point itself, which is the closest group whose files we can read.
fs::path below(const std::string& group, const std::string& group_root) {
  const fs::path relative = fs::path(group).lexically_normal().lexically_relative(group_root);
  if (relative.empty() || relative == "." || *relative.begin() == "..") return {};
  return relative;
}

}  // namespace

std::vector<CgroupFolders> cgroup_folders(const fs::path& root, std::string_view controller) {
  std::vector<CgroupFolders> found;
  for (const auto& mount : cgroup_mounts(root, controller)) {
    const auto group = own_group(root, mount.version, controller);
    if (!group) continue;
    const fs::path point = root / mount.point.relative_path();
    CgroupFolders hierarchy{mount.version, {}};
    for (fs::path relative = below(*group, mount.group_root); !relative.empty(); relative = relative.parent_path())
      hierarchy.folders.push_back(point / relative);
    hierarchy.folders.push_back(point);
    found.push_back(std::move(hierarchy));
  }
  return found;
}

std::optional<std::string> read_line(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  return line;
}

std::optional<long long> parse_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  long long value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{}) return std::nullopt;
  return value;
}

}  // namespace hk::engine
