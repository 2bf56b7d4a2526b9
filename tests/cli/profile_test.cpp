// --profile and --profile-json: what took how long adds up, nests, and changes no answer.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace hk::test {
namespace {

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

Outcome generate(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"generate", kModel, "-p",     "Once upon a time there was",
                                        "-n",       "8",    "--temp", "0"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return hk_run(arguments);
}

nlohmann::json trace(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return nlohmann::json::parse(reinterpret_cast<const char*>(bytes.data()),
                               reinterpret_cast<const char*>(bytes.data()) + bytes.size());
}

TEST(Profile, TheTableNamesStagesAndLimits) {
  const auto run = generate({"--profile"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, generate({}).out);
  for (const char* part : {"profile, prompt: ", "profile, generated: 7 tokens", "the machine now: ", "gate, up",
                           "attention output", "of peak", "outside of stages", "halves of layers: attention half "})
    EXPECT_TRUE(has(run.err, part)) << part << "\n" << run.err;
  EXPECT_FALSE(has(generate({}).err, "profile"));
}

TEST(Profile, TheTraceNests) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "trace.json";
  const auto run = generate({"--profile-json", path.string()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_FALSE(has(run.err, "of peak"));
  const auto events = trace(path).at("traceEvents");
  std::size_t passes = 0, stages = 0, parts = 0;
  struct Open {
    double begin, end;
    int process;
  };
  std::vector<Open> open;
  for (const auto& event : events) {
    const int process = event.at("pid");
    if (event.at("ph") == "M") {
      EXPECT_EQ(event.at("name"), "process_name");
      ++parts;
      open.clear();
      continue;
    }
    ASSERT_EQ(event.at("ph"), "X");
    const double begin = event.at("ts"), end = begin + event.at("dur").get<double>();
    EXPECT_LE(begin, end);
    constexpr double kRounding = 0.002;  // microseconds with three digits
    while (!open.empty() && open.back().end <= begin + kRounding) open.pop_back();
    if (!open.empty()) EXPECT_LE(end, open.back().end + kRounding) << event.dump();
    open.push_back({begin, end, process});
    if (event.at("name") == "pass") ++passes;
    if (event.at("cat") == "stage") {
      ++stages;
      EXPECT_GE(open.size(), 2U) << event.dump();  // within a pass at least
    }
  }
  EXPECT_EQ(parts, 2U);
  EXPECT_EQ(passes, 8U);  // the prompt, and seven tokens that were read again
  EXPECT_GT(stages, 8U * 10);
}

TEST(Profile, OfABenchmark) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "trace.json";
  const auto run = hk_run({"bench", kModel, "-p", "16", "-n", "4", "-d", "0", "-r", "1", "-o", "json", "--profile",
                           "--profile-json", path.string()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(nlohmann::json::accept(run.out)) << run.out;
  EXPECT_TRUE(has(run.err, "profile, pp16: 16 tokens")) << run.err;
  EXPECT_TRUE(has(run.err, "profile, tg4: 4 tokens")) << run.err;
  EXPECT_TRUE(has(trace(path).dump(), "tg4"));
}

TEST(Profile, AFileThatCannotBeWritten) {
  const auto run = generate({"--profile-json", "/nowhere/trace.json"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_TRUE(has(run.err, "/nowhere/trace.json")) << run.err;
}

}  // namespace
}  // namespace hk::test
