// The default number of threads under a real affinity mask and a real CPU quota, and that waiting costs nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "engine/runtime/cgroup.h"
#include "engine/runtime/topology.h"
#include "tests/support/processor_time.h"
#include "tests/support/run_program.h"

namespace hk::test {
namespace {

namespace fs = std::filesystem;

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

Outcome generate(const std::vector<std::string>& more, const RunOptions& options = {}) {
  std::vector<std::string> arguments = {"generate", kModel, "-p", "Once upon a time", "-n", "2", "--temp", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return hk_run(arguments, options);
}

TEST(Threads, FollowTheAffinityMask) {
  const auto topology = engine::read_topology();
  int cpu = -1;
  for (const auto& each : topology.cpus)
    if (each.allowed) cpu = each.id;
  ASSERT_GE(cpu, 0);
  RunOptions options;
  options.in_child = [cpu] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  };
  const auto run = generate({}, options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(has(run.err, "1 thread (1 physical core")) << run.err;
  if (topology.cpus.size() > 1) EXPECT_TRUE(has(run.err, "in the affinity mask (1 of ")) << run.err;
  // Who asks for more gets it.
  const auto asked = generate({"-t", "2"}, options);
  EXPECT_TRUE(has(asked.err, "2 threads (as asked)")) << asked.err;
  EXPECT_EQ(asked.out, run.out);
}

/// A control group below the one we are in, with a quota of one CPU. Absent where we may not make one.
class QuotaGroup {
 public:
  QuotaGroup() {
    for (const auto& hierarchy : engine::cgroup_folders("/", "cpu")) {
      const bool v2 = hierarchy.version == engine::CgroupVersion::kV2;
      const fs::path folder = hierarchy.folders.front() / ("hk-test-" + std::to_string(::getpid()));
      std::error_code refused;
      if (!fs::create_directory(folder, refused) || refused) continue;
      folder_ = folder;
      const bool set = v2 ? write("cpu.max", "100000 100000")
                          : write("cpu.cfs_period_us", "100000") && write("cpu.cfs_quota_us", "100000");
      if (set) {
        joined_ = folder / "cgroup.procs";
        return;
      }
      fs::remove(folder, refused);
      folder_.clear();
    }
  }
  ~QuotaGroup() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());
  }
  QuotaGroup(const QuotaGroup&) = delete;
  QuotaGroup& operator=(const QuotaGroup&) = delete;
  bool exists() const { return !joined_.empty(); }
  /// Called in a child: it moves there.
  void join() const {
    const int file = ::open(joined_.c_str(), O_WRONLY);
    if (file < 0 || ::write(file, "0", 1) != 1) ::_exit(125);
    ::close(file);
  }

 private:
  bool write(const char* name, const char* text) const {
    std::ofstream out(folder_ / name);
    out << text << std::flush;
    return out.good();
  }
  fs::path folder_, joined_;
};

TEST(Threads, FollowTheCpuQuota) {
  const QuotaGroup group;
  if (!group.exists()) {
    std::cerr << "\n*** SKIPPED: control groups of the cpu controller cannot be made here ***\n\n";
    GTEST_SKIP();
  }
  RunOptions options;
  options.in_child = [&group] { group.join(); };
  const auto run = generate({}, options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(has(run.err, "1 thread (")) << run.err;
  EXPECT_TRUE(has(run.err, "CPU quota 1")) << run.err;
}

TEST(Threads, PromptsMayHaveTheirOwnNumber) {
  const auto run = generate({"-t", "1", "-tb", "3"});
  EXPECT_TRUE(has(run.err, "1 thread (as asked, 3 for prompts)")) << run.err;
  EXPECT_EQ(generate({"-tb", "257"}).exit_code, 2);
  EXPECT_EQ(generate({"-t", "-1"}).exit_code, 2);
}

TEST(Idle, AChatThatWaitsTakesNoTime) {
  const TemporaryFolder folder;
  const auto out_path = folder.path() / "out", err_path = folder.path() / "err";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int out = ::open(out_path.c_str(), O_WRONLY | O_CREAT, 0600),
              err = ::open(err_path.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(ends[0], 0), ::dup2(out, 1), ::dup2(err, 2);
    ::execl(program(), program(), "chat", kModel.c_str(), "-n", "4", "-t", "2", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ASSERT_EQ(::write(ends[1], "Hello\n", 6), 6);
  // The statistics line comes when the answer is whole.
  const auto said = [&] {
    return fs::exists(err_path) &&
           has(std::string(reinterpret_cast<const char*>(read_file(err_path).data()), read_file(err_path).size()),
               "finish:");
  };
  for (int tries = 0; tries < 600 && !said(); ++tries) ::usleep(100 * 1000);
  EXPECT_TRUE(said());
  ::usleep(100 * 1000);
  const double before = processor_seconds(child);
  ::usleep(1000 * 1000);
  EXPECT_LE(processor_seconds(child) - before, 0.02);
  EXPECT_GT(before, 0);
  ::close(ends[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  ::close(ends[0]);
}

}  // namespace
}  // namespace hk::test
