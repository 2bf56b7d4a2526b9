// hk-run generate and hardware from outside: streams, options, exit codes, and the golden answers of the demo model.
#include <gtest/gtest.h>
#include <sys/ioctl.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"

namespace hk::test {
namespace {

using Json = nlohmann::json;

std::vector<Json> golden(const std::filesystem::path& path) {
  std::vector<Json> cases;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) cases.push_back(Json::parse(line));
  return cases;
}

TEST(Generate, GoldenAnswersOfTheDemoModel) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  HK_FIXTURE(file, "models/demo/golden.jsonl");
  std::size_t compared = 0;
  for (const auto& item : golden(file)) {
    if (!item["robust"].get<bool>()) continue;
    const auto limit = item["kind"] == "chat" ? "128" : "48";
    RunOptions options;
    options.input = item["prompt"];
    const auto run = hk_run({"generate", model, "-p", "-", "--parse-special", "--temp", "0", "-n", limit}, options);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, item["completion"].get<std::string>()) << item["id"];
    EXPECT_NE(run.err.find(item["finish"] == "stop" ? "finish: end" : "finish: length"), std::string::npos) << run.err;
    if (++compared == 12) break;
  }
  EXPECT_EQ(compared, 12u);
}

TEST(Generate, SameSeedSameTextForAnyThreads) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  const auto text = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"generate", model, "-p", "Once upon a time", "-n", "40", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = hk_run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  const auto first = text({"--seed", "5", "-t", "1"});
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(text({"--seed", "5", "-t", "2"}), first);
  EXPECT_EQ(text({"--seed", "5", "-t", "3"}), first);
  EXPECT_NE(text({"--seed", "6"}), first);
}

TEST(Generate, OneLineOfStatistics) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  const auto run = hk_run({"generate", model, "-p", "Hello", "-n", "3", "-t", "1", "--ignore-eos", "--seed", "9"});
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  for (const char* part : {"prompt ", "(0 cached)", "tok/s", "generated 3 tokens", "finish: length", "private",
                           "mapped", "1 thread (as asked)", "seed 9"})
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " is not in " << run.err;
}

TEST(Generate, PromptFromFileEchoAndStop) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  TemporaryFolder folder;
  std::ofstream(folder.path() / "prompt") << "The capital of France is";
  const auto plain = hk_run({"generate", model, "-f", (folder.path() / "prompt").string(), "-n", "8", "--temp", "0"});
  const auto echoed = hk_run({"generate", model, "-p", "The capital of France is", "-n", "8", "--temp", "0", "--echo"});
  EXPECT_EQ(echoed.out, "The capital of France is" + plain.out);
  const auto stopped =
      hk_run({"generate", model, "-p", "The capital of France is", "--temp", "0", "--stop", "aris", "-n", "8"});
  EXPECT_EQ(stopped.out, " P");
  EXPECT_NE(stopped.err.find("finish: stop"), std::string::npos);
}

TEST(Generate, JsonWithLogprobs) {
  const std::string model = std::string(source_root()) + "/demo/hinoki.hk";
  const std::vector<std::string> common = {"generate", model, "-p",     "The capital of France is",
                                           "-n",       "4",   "--temp", "0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return hk_run(more);
  };
  const auto plain = with({});
  const auto run = with({"--json", "--logprobs", "3", "--seed", "7"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 1);
  const auto json = Json::parse(run.out);
  EXPECT_EQ(json["text"], plain.out);
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["completion_tokens"], 4);
  ASSERT_EQ(json["tokens"].size(), 4u);
  std::string text;
  for (const auto& token : json["tokens"]) {
    text += token["text"].get<std::string>();
    EXPECT_LE(token["logprob"].get<double>(), 0);
    ASSERT_EQ(token["top"].size(), 3u);
    EXPECT_EQ(token["top"][0]["id"], token["id"]);  // greedy
    EXPECT_GE(token["top"][0]["logprob"], token["top"][1]["logprob"]);
  }
  EXPECT_EQ(text, plain.out);
  EXPECT_EQ(Json::parse(with({"--json"}).out)["tokens"].size(), 4u);
  EXPECT_EQ(Json::parse(with({"--json", "--echo"}).out)["text"], "The capital of France is" + plain.out);
  EXPECT_EQ(with({"--logprobs", "3"}).exit_code, 2);
}

TEST(Generate, FullContextIsTold) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  const auto run = hk_run({"generate", model, "-p", "Once upon a time", "-c", "16", "--ignore-eos"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("finish: context full"), std::string::npos) << run.err;
  const auto too_long = hk_run({"generate", model, "-p", "Once upon a time there was a prompt", "-c", "4"});
  EXPECT_EQ(too_long.exit_code, 1);
  EXPECT_NE(too_long.err.find("the context holds 4"), std::string::npos) << too_long.err;
}

TEST(Generate, BadUsage) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  const auto refused = [&](std::vector<std::string> more, const char* word) {
    std::vector<std::string> arguments = {"generate", model};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto run = hk_run(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find(word), std::string::npos) << run.err;
    EXPECT_TRUE(run.out.empty());
  };
  refused({}, "-p TEXT");
  refused({"-p", "x", "-f", "y"}, "one of them");
  refused({"-p", "x", "--temp", "-1"}, "temperature");
  refused({"-p", "x", "--top-p", "7"}, "top-p");
  refused({"-p", "x", "--kv", "q1"}, "--kv");
  refused({"-p", "x", "-t", "0"}, "threads");
  refused({"-p", "x", "-c", "0"}, "--context");
  refused({"-p", "x", "-n", "-7"}, "-n");
  refused({"-p", "x", "--samplers", "top_k;nonsense"}, "nonsense");
  refused({"-p", "x", "--logit-bias", "abc"}, "--logit-bias");
  refused({"-p", "x", "--logit-bias", "99999+1"}, "99999");
}

TEST(Generate, BadInput) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  EXPECT_EQ(hk_run({"generate", "/nowhere.hk", "-p", "x"}).exit_code, 1);
  EXPECT_EQ(hk_run({"generate", model, "-f", "/nowhere.txt"}).exit_code, 1);
  const auto empty = hk_run({"generate", model, "-p", ""});
  EXPECT_EQ(empty.exit_code, 1);
  EXPECT_NE(empty.err.find("empty"), std::string::npos);
}

TEST(Generate, InterruptKeepsTheTextAndExits130) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  RunOptions options;
  options.interrupt_after_ms = 1200;
  // A context far beyond what can be filled in that time.
  const auto run =
      hk_run({"generate", model, "-p", "Once upon a time", "-c", "100000", "--ignore-eos", "--temp", "0"}, options);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_FALSE(run.out.empty());
  EXPECT_NE(run.err.find("finish: cancelled"), std::string::npos) << run.err;
}

TEST(Generate, AFullDiskIsAnError) {
  HK_FIXTURE(model, "models/demo/demo-f16.gguf");
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  RunOptions options;
  options.out_path = "/dev/full";
  EXPECT_EQ(hk_run({"generate", model, "-p", "Hello", "-n", "3", "--ignore-eos"}, options).exit_code, 3);
}

// A write that waits for a slow reader is cut short by the signal, which is no failure of the output: the answer so far
// arrives whole.
TEST(Generate, InterruptWhileTheReaderIsSlow) {
  const std::string model = std::string(source_root()) + "/demo/hinoki.hk";
  const std::vector<std::string> story = {"generate",     model, "-p",    "Once upon a time", "-t", "1",
                                          "--ignore-eos", "-c",  "20000", "--temp",           "0"};
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_GE(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
  std::string out;
  RunOptions options;
  options.in_child = [&] {
    if (::dup2(ends[1], STDOUT_FILENO) < 0) ::_exit(126);
  };
  options.meanwhile = [&](pid_t child) {
    ::close(ends[1]);
    // Until the pipe is full and stays so; a minute at most.
    for (int before = 0, same = 0, tries = 0; same < 20 && tries < 6000; ++tries) {
      int now = 0;
      if (::ioctl(ends[0], FIONREAD, &now) != 0) break;
      same = now > 4000 && now == before ? same + 1 : 0;
      before = now;
      ::usleep(10'000);
    }
    ::kill(child, SIGINT);
    ::usleep(50'000);  // it looks at the signal before there is room
    char buffer[4096];
    for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<size_t>(got));
    ::close(ends[0]);
  };
  const auto run = hk_run(story, options);
  EXPECT_EQ(run.exit_code, 130) << run.err;
  EXPECT_FALSE(has(run.err, "cannot write")) << run.err;
  EXPECT_GT(out.size(), 4000u);
  auto limited = story;
  limited.insert(limited.end(), {"-n", "2500"});
  const auto whole = hk_run(limited);
  ASSERT_GT(whole.out.size(), out.size());
  if (out.ends_with('\n')) out.pop_back();
  EXPECT_EQ(whole.out.substr(0, out.size()), out);
}

TEST(Hardware, TextAndJson) {
  const auto text = hk_run({"hardware"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  for (const char* part : {"CPU ", "Cores", "Memory", "Threads", "Kernels", "generic"})
    EXPECT_NE(text.out.find(part), std::string::npos) << part;
  const auto json = Json::parse(hk_run({"hardware", "--json"}).out);
  EXPECT_GE(json["threads"]["default"], 1);
  EXPECT_FALSE(json["kernels"]["usable"].empty());
  EXPECT_EQ(json["kernels"]["usable"].back(), "generic");
}

TEST(Hardware, ForcedKernels) {
  setenv("HK_KERNELS", "generic", 1);
  EXPECT_EQ(Json::parse(hk_run({"hardware", "--json"}).out)["kernels"]["in_use"], "generic");
  setenv("HK_KERNELS", "mmx", 1);
  const auto refused = hk_run({"hardware"});
  unsetenv("HK_KERNELS");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("HK_KERNELS=mmx"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace hk::test
