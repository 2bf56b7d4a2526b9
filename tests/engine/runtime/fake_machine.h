// A folder that looks like the /sys and /proc of another machine.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/fixtures.h"

namespace hk::test {

class FakeMachine {
 public:
  const std::filesystem::path& root() const { return folder_.path(); }
  FakeMachine& file(const std::string& path, const std::string& text) {
    const auto target = root() / path;
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target) << text << '\n';
    return *this;
  }
  FakeMachine& cpu(int id, const std::string& name, const std::string& text) {
    return file("sys/devices/system/cpu/cpu" + std::to_string(id) + "/" + name, text);
  }
  FakeMachine& online(const std::string& list) { return file("sys/devices/system/cpu/online", list); }
  /// cgroup version 2, mounted at /sys/fs/cgroup, this process in `group`.
  FakeMachine& cgroup2(const std::string& group) {
    return file("proc/self/cgroup", "0::" + group)
        .file("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate");
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace hk::test
