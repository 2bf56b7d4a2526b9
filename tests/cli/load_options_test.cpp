// Where weights lie and what becomes of them: --load, --read-ahead, --numa, limits of the process, files that shrink.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace hk::test {
namespace {

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

Outcome generate(std::vector<std::string> more, const RunOptions& options = {}) {
  std::vector<std::string> arguments = {"generate", kModel, "-p", "Once upon a time", "-n", "8", "--temp", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return hk_run(arguments, options);
}

void limit(int resource, rlim_t bytes) {
  const struct rlimit both { bytes, bytes };
  ::setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

TEST(LoadOptions, EveryWayGivesTheSameAnswer) {
  const auto mapped = generate({});
  ASSERT_EQ(mapped.exit_code, 0) << mapped.err;
  for (const std::vector<std::string>& more : {std::vector<std::string>{"--load", "mmap", "--read-ahead", "on"},
                                               {"--load", "read"},
                                               {"--read-ahead", "off"},
                                               {"--numa", "distribute"},
                                               {"--numa", "isolate"}}) {
    const auto run = generate(more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, mapped.out);
  }
}

TEST(LoadOptions, OtherCommandsKnowThemToo) {
  const TemporaryFolder folder;
  const auto out = (folder.path() / "logits").string();
  EXPECT_EQ(hk_run({"logits", kModel, "--tokens", "1,2,3", "-o", out, "--load", "read"}).exit_code, 0);
  EXPECT_GT(std::filesystem::file_size(out), 0U);
  EXPECT_EQ(hk_run({"logits", kModel, "--tokens", "1,2,3", "-o", out, "--mem-limit", "1M"}).exit_code, 3);
  const auto bench = hk_run({"bench", kModel, "-p", "0", "-n", "2", "-d", "0", "-r", "1", "--load", "read"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  const auto chat = hk_run({"chat", kModel, "-p", "Hello", "-n", "2", "--load", "read", "--read-ahead", "on"});
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
}

TEST(LoadOptions, WordsThatMeanNothing) {
  for (const char* option : {"--load", "--read-ahead", "--numa"}) {
    const auto run = generate({option, "perhaps"});
    EXPECT_EQ(run.exit_code, 2) << option;
    EXPECT_TRUE(has(run.err, option)) << run.err;
  }
}

TEST(LoadOptions, PrivateWeightsCountAsPrivate) {
  const auto plan = generate({"--load", "read", "--memory-plan"});
  EXPECT_TRUE(has(plan.err, "held in memory")) << plan.err;
  // Less than the file has.
  const auto limit = std::to_string(std::filesystem::file_size(kModel) + (1 << 20));
  const auto refused = generate({"--load", "read", "--mem-limit", limit});
  EXPECT_EQ(refused.exit_code, 3) << refused.err;
  EXPECT_TRUE(has(refused.err, "the weights ")) << refused.err;
}

TEST(LoadOptions, LockingBeyondTheLimitIsASentence) {
  RunOptions options;
  options.in_child = [] {
    ::prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);  // the administrator may lock what he likes
    limit(RLIMIT_MEMLOCK, 64 << 10);
  };
  const auto run = generate({"--load", "lock"}, options);
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(has(run.err, "hinoki.hk cannot be locked in memory")) << run.err;
  EXPECT_TRUE(has(run.err, "RLIMIT_MEMLOCK")) << run.err;
}

TEST(LoadOptions, LockingWithinTheLimit) {
  RunOptions options;
  struct rlimit allowed {};
  ::getrlimit(RLIMIT_MEMLOCK, &allowed);
  const auto size = std::filesystem::file_size(kModel);
  if (::geteuid() != 0 && allowed.rlim_max < 2 * size) {
    std::cerr << "\n*** SKIPPED: this user may lock " << allowed.rlim_max << " bytes only ***\n\n";
    GTEST_SKIP();
  }
  options.in_child = [&] { limit(RLIMIT_MEMLOCK, 2 * size); };
  const auto run = generate({"--load", "lock"}, options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST(ProcessLimits, TheAddressSpaceIsPartOfThePlan) {
  RunOptions options;
  options.in_child = [] { limit(RLIMIT_AS, rlim_t{600} << 20); };
  EXPECT_EQ(generate({}, options).exit_code, 0);
  const auto run = generate({"-c", "20000000"}, options);
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_TRUE(has(run.err, "limits of this process")) << run.err;
}

TEST(ProcessLimits, AFileThatMayNotGrowIsASentence) {
  const TemporaryFolder folder;
  RunOptions options;
  options.in_child = [] { limit(RLIMIT_FSIZE, 64 << 10); };
  const auto run = hk_run({"convert", kModel, (folder.path() / "copy.hk").string()}, options);
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_TRUE(has(run.err, "File too large")) << run.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "copy.hk"));
}

TEST(ProcessLimits, AFileThatShrinksWhileItIsUsed) {
  const TemporaryFolder folder;
  const auto copy = (folder.path() / "model.hk").string();
  std::filesystem::copy_file(kModel, copy);
  RunOptions options;
  options.meanwhile = [&](pid_t) {
    ::usleep(400 * 1000);
    std::filesystem::resize_file(copy, 8192);
  };
  // Long enough to be under way; with what is left of the file it could not go on.
  const auto run = hk_run({"bench", copy, "-p", "0", "-n", "2000", "-d", "0", "-r", "1000"}, options);
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(has(run.err, "model.hk: the file can no longer be read")) << run.err;
}

}  // namespace
}  // namespace hk::test
