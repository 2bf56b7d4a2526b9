// Options that every command with a running model has: memory limits, the plan, threads for prompts.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace hk::test {
namespace {

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

Outcome generate(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"generate", kModel, "-p", "Once upon a time", "-n", "8", "--temp", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return hk_run(arguments);
}

TEST(ModelOptions, TooMuchContextIsRefusedWithNumbersAndWhatWouldFit) {
  const auto run = generate({"-c", "2000000", "--mem-limit", "100M"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(has(run.err, "not enough memory: a context of 2000000 tokens takes ")) << run.err;
  EXPECT_TRUE(has(run.err, "--mem-limit 100.0 MiB leaves beside the ")) << run.err;
  const auto at = run.err.find("(-c ");
  ASSERT_NE(at, std::string::npos) << run.err;
  // What is said to fit does.
  const auto context = run.err.substr(at + 4, run.err.find(')', at) - at - 4);
  EXPECT_EQ(generate({"-c", context, "--mem-limit", "100M"}).exit_code, 0) << context;
}

TEST(ModelOptions, NoMemoryAtAll) {
  const auto run = generate({"--mem-limit", "1M"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(has(run.err, "not enough memory")) << run.err;
  EXPECT_EQ(generate({"--mem-limit", "many"}).exit_code, 2);
}

TEST(ModelOptions, ThePlanIsSaidBeforeTheAnswer) {
  const auto run = generate({"--memory-plan", "-c", "512"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* part : {"weights ", " mapped, context of 512 tokens ", " at first and ", "forward pass "})
    EXPECT_TRUE(has(run.err, part)) << run.err;
  EXPECT_EQ(run.out, generate({}).out);
}

TEST(ModelOptions, ThreadsForPromptsChangeNothingInTheAnswer) {
  const auto one = generate({"-t", "1"});
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"-t", "1", "-tb", "2"}, {"-t", "2", "--threads-batch", "1"}}) {
    const auto run = generate(more);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, one.out);
    EXPECT_TRUE(has(run.err, "for prompts")) << run.err;
  }
  EXPECT_EQ(generate({"-t", "1", "-tb", "0"}).exit_code, 2);
}

TEST(ModelOptions, BenchPlansToo) {
  const auto bench = hk_run({"bench", kModel, "-p", "0", "-n", "4", "-d", "1000000", "-r", "1", "--mem-limit", "50M"});
  EXPECT_EQ(bench.exit_code, 3) << bench.err;
  EXPECT_EQ(bench.out, "");
  EXPECT_TRUE(has(bench.err, "not enough memory")) << bench.err;
}

}  // namespace
}  // namespace hk::test
