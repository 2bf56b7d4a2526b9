// Shards of a request file and their merging, by hand and with GNU parallel.
#include "tests/cli/batch_support.h"

namespace hk::test {
namespace {

class BatchMerge : public BatchTest {
 protected:
  static constexpr int kParts = 3;
  void SetUp() override {
    auto lines = mixed_requests(60);
    lines.push_back("{broken");
    lines.push_back(lines[4]);  // an id twice
    lines.push_back(R"({"prompt":"no id","max_tokens":3})");
    write_lines(at("in.jsonl"), lines);
  }
  std::string part(int i) const { return at("part" + std::to_string(i)); }
  void run_shards() {
    for (int i = 1; i <= kParts; ++i)
      batch("in.jsonl", "part" + std::to_string(i), {"--shard", std::to_string(i) + "/" + std::to_string(kParts)});
  }
  Outcome merge(std::vector<std::string> more, std::vector<std::string> parts = {}) {
    if (parts.empty())
      for (int i = 1; i <= kParts; ++i) parts.push_back(part(i));
    std::vector<std::string> arguments = {"batch", "merge", at("merged")};
    arguments.insert(arguments.end(), parts.begin(), parts.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hk_run(arguments);
  }
};

TEST_F(BatchMerge, PartsAreTheWholeInTheOrderOfTheInput) {
  EXPECT_EQ(batch("in.jsonl", "whole").exit_code, 1);  // two lines are no requests
  run_shards();
  std::size_t sum = 0;
  for (int i = 1; i <= kParts; ++i) {
    const auto count = answers_in(part(i)).size();
    EXPECT_GT(count, 5u);  // the hash spreads
    sum += count;
  }
  EXPECT_EQ(sum, 63u);
  const auto run = merge({"--input", at("in.jsonl")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(essence(at("merged")), essence(at("whole")));
  std::vector<std::uint64_t> lines;
  for (const auto& answer : answers_in(at("merged")))
    lines.push_back(answer.contains("line") ? answer["line"].get<std::uint64_t>()
                                            : std::stoull(answer["id"].get<std::string>().substr(10)));
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  EXPECT_EQ(merge({}).exit_code, 1);  // the target exists
  EXPECT_EQ(merge({"--force"}).exit_code, 0);
  EXPECT_EQ(essence(at("merged")), essence(at("whole")));
}

TEST_F(BatchMerge, WhatIsMissingTwiceOrForeignIsTold) {
  run_shards();
  const auto refused = [&](const Outcome& run, const char* word) {
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_NE(run.err.find(word), std::string::npos) << run.err;
    EXPECT_FALSE(std::filesystem::exists(at("merged")));
  };
  refused(merge({"--input", at("in.jsonl")}, {part(1), part(2)}), "have no answer");
  refused(merge({}, {part(1), part(2), part(1)}), "answers what");
  refused(merge({}, {part(1), at("in.jsonl")}), "no answer of a batch");
  refused(merge({}, {part(1), at("nowhere")}), "nowhere");
  write_lines(at("few.jsonl"), {mixed_requests(1)[0]});
  refused(merge({"--input", at("few.jsonl")}), "not in");
  std::filesystem::resize_file(part(2), std::filesystem::file_size(part(2)) - 5);
  refused(merge({}), "cut");
  batch("in.jsonl", "part2", {"--resume", "--shard", "2/3"});
  EXPECT_EQ(merge({"--input", at("in.jsonl")}).exit_code, 0);
  std::filesystem::remove(at("merged"));
  EXPECT_EQ(merge({"--input", at("in.jsonl"), "--partial"}, {part(1), part(2)}).exit_code, 0);
}

/// The example of docs/batch.md.
TEST_F(BatchMerge, GnuParallel) {
  if (std::system("parallel --version >/dev/null 2>&1") != 0) {
    if (std::getenv("HK_REQUIRE_FIXTURES") != nullptr) FAIL() << "GNU parallel is not installed";
    std::cerr << "\n*** SKIPPED: GNU parallel is not installed ***\n\n";
    GTEST_SKIP();
  }
  batch("in.jsonl", "whole");
  const std::string command = "cd " + folder.path().string() + " && parallel --will-cite -j 2 " + program() +
                              " batch " + demo_model() +
                              " in.jsonl -o answers-{}.jsonl --shard {}/4 --resume -t 1 -q ::: 1 2 3 4; " + program() +
                              " batch merge answers.jsonl answers-?.jsonl --input in.jsonl";
  RunOptions options;
  options.out_path = "/dev/null";
  const auto run = run_program({"/bin/sh", "-c", command}, options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(essence(at("answers.jsonl")), essence(at("whole")));
}

}  // namespace
}  // namespace hk::test
