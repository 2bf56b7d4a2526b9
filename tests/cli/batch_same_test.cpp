// hk-run batch: the same answers whatever the slots, threads, order and interruptions; shared beginnings read once.
#include <algorithm>
#include <regex>

#include "tests/cli/batch_support.h"

namespace hk::test {
namespace {

class BatchSame : public BatchTest {
 protected:
  void SetUp() override {
    requests = mixed_requests();
    write_lines(at("in.jsonl"), requests);
  }
  /// Answers of a run with one slot and one thread.
  std::map<std::string, std::string> reference() {
    EXPECT_EQ(batch("in.jsonl", "reference", {"--slots", "1", "-t", "1"}).exit_code, 0);
    auto answers = essence(at("reference"));
    EXPECT_EQ(answers.size(), requests.size());
    return answers;
  }
  Lines requests;
};

TEST_F(BatchSame, AnySlotsThreadsOrderAndCache) {
  const auto expected = reference();
  int number = 0;
  const auto check = [&](const std::string& in, std::vector<std::string> more) {
    const auto out = "out" + std::to_string(number++);
    const auto run = batch(in, out, std::move(more));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(essence(at(out)), expected);
  };
  check("in.jsonl", {"--slots", "16", "-t", "1"});
  check("in.jsonl", {"--slots", "1", "-t", "2"});
  check("in.jsonl", {"--slots", "16", "-t", "2"});
  check("in.jsonl", {"--slots", "5", "--prefix-cache", "0"});
  check("in.jsonl", {"--slots", "16", "--ordered"});
  std::mt19937 random(5);
  auto shuffled = requests;
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  write_lines(at("shuffled.jsonl"), shuffled);
  check("shuffled.jsonl", {"--slots", "16", "-t", "2"});
}

TEST_F(BatchSame, AnswersDifferBetweenIdsAndSeeds) {
  const Json request{{"prompt", "Once upon a time"}, {"max_tokens", 30}};
  auto named = request;
  named["id"] = "x";
  auto other = request;
  other["id"] = "y";
  const auto first = ask(named)["text"];
  EXPECT_EQ(ask(named)["text"], first);
  EXPECT_NE(ask(other)["text"], first);
  EXPECT_NE(ask(named, {"--seed", "9"})["text"], first);
}

TEST_F(BatchSame, TwentyKillsLoseNothingAndRepeatNothing) {
  const auto expected = reference();
  std::mt19937 random(std::random_device{}());
  const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::size_t cuts = 0, killed = 0;
  for (int cycle = 0; cycle < 20; ++cycle) {
    const auto text = std::filesystem::exists(at("out")) ? file_text(at("out")) : "";
    const auto before = lines_of(text).size();
    Background run(arguments("in.jsonl", "out", {"--resume", "--slots", std::to_string(1 + pick(8)), "-t", "1"}),
                   at("err"));
    const std::size_t wanted = before + pick(9);
    ASSERT_TRUE(wait_until([&] {
      if (!run.running()) return true;
      return std::filesystem::exists(at("out")) && lines_of(file_text(at("out"))).size() >= wanted;
    })) << run.err();
    ::usleep(static_cast<useconds_t>(pick(3000)));
    if (run.running()) {
      run.signal(SIGKILL);
      EXPECT_EQ(run.wait(), 128 + SIGKILL);
      ++killed;
    }
    // A power cut may also take the end of what was written.
    const auto now = file_text(at("out"));
    if (now.size() > 10 && pick(2) == 0) {
      const auto last_line = now.size() - 1 - now.rfind('\n', now.size() - 2);
      std::filesystem::resize_file(at("out"), now.size() - 1 - pick(last_line - 1));
      ++cuts;
    }
  }
  EXPECT_GE(killed, 15u);
  EXPECT_GT(cuts, 0u);
  const auto last = batch("in.jsonl", "out", {"--resume"});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(essence(at("out")), expected);
  // All is done: another run finds nothing to do and changes nothing.
  const auto whole = file_text(at("out"));
  EXPECT_EQ(batch("in.jsonl", "out", {"--resume"}).exit_code, 0);
  EXPECT_EQ(file_text(at("out")), whole);
}

TEST_F(BatchSame, OrderedKeepsTheOrderThroughAKill) {
  const auto ids = [&](const std::string& out) {
    std::vector<std::uint64_t> lines;
    for (const auto& line : lines_of(file_text(at(out)))) {
      const auto answer = Json::parse(line);
      lines.push_back(answer.contains("line") ? answer["line"].get<std::uint64_t>()
                                              : std::stoull(answer["id"].get<std::string>().substr(10)));
    }
    return lines;
  };
  {
    Background run(arguments("in.jsonl", "out", {"--ordered", "--slots", "8"}), at("err"));
    wait_until([&] { return std::filesystem::exists(at("out")) && lines_of(file_text(at("out"))).size() > 20; });
    run.signal(SIGKILL);
    run.wait();
  }
  EXPECT_EQ(batch("in.jsonl", "out", {"--ordered", "--resume"}).exit_code, 0);
  const auto order = ids("out");
  EXPECT_EQ(order.size(), requests.size());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

// 100 requests over a beginning of 1000 tokens: a longer context than the model was trained with, which counts alike.
TEST_F(BatchSame, ASharedPrefixIsReadOnce) {
  const std::vector<std::string> context = {"-c", "1536"};
  const auto length = [&](const std::string& text) {
    return ask(Json{{"prompt", text}, {"max_tokens", 0}}, context)["usage"]["prompt_tokens"].get<std::size_t>();
  };
  const char* countries[] = {"France", "Spain", "Italy", "Japan", "Norway", "Peru", "Kenya", "Greece", "Chile"};
  std::string shots = "You know all the capitals of the world and answer with one word. ";
  for (const char* country : countries) shots += std::string("The capital of ") + country + " is a city. ";
  std::string prefix = shots;
  while (length(prefix) < 1000) prefix += shots;
  prefix += "So here is the question.";
  const std::size_t stem = length(prefix);
  Lines lines;
  for (int i = 0; i < 100; ++i)
    lines.push_back(Json{
        {"id", i},
        {"prompt", prefix + " " + std::string(1, static_cast<char>('A' + i % 26)) + " is number " + std::to_string(i)},
        {"max_tokens",
         8}}.dump());
  write_lines(at("shared.jsonl"), lines);
  const auto run = batch("shared.jsonl", "out", context);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::smatch found;
  ASSERT_TRUE(std::regex_search(run.err, found, std::regex("(\\d+) prompt tokens read, (\\d+) shared")));
  const std::size_t read = std::stoul(found[1]), shared = std::stoul(found[2]);
  std::size_t prompts = 0;
  for (const auto& answer : answers_in(at("out"))) prompts += answer["usage"]["prompt_tokens"].get<std::size_t>();
  EXPECT_EQ(read + shared, prompts);
  EXPECT_GT(prompts, 100'000u);
  // The prefix once, and what is each prompt's own.
  const std::size_t once = stem + (prompts - 100 * stem);
  EXPECT_LE(read, once * 105 / 100) << "of " << prompts;

  write_lines(at("some.jsonl"), {lines.begin(), lines.begin() + 10});
  const auto alone = batch("some.jsonl", "out2", {"-c", "1536", "--prefix-cache", "0"});
  EXPECT_NE(alone.err.find(" prompt tokens read, 0 shared"), std::string::npos) << alone.err;
  const auto together = essence(at("out"));
  for (const auto& [id, answer] : essence(at("out2"))) EXPECT_EQ(together.at(id), answer) << id;
}

}  // namespace
}  // namespace hk::test
