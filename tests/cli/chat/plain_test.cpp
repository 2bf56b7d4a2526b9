// The chat in a pipe: commands, sessions, thinking, full contexts, errors and exit codes.
#include <gtest/gtest.h>
#include <sys/file.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/support/run_program.h"
#include "tests/support/statistics_line.h"

namespace hk::test {
namespace {

using Json = nlohmann::json;

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

class ChatPipe : public testing::Test {
 protected:
  void SetUp() override { setenv("HK_STATE_DIR", (folder_.path() / "state").c_str(), 1); }
  void TearDown() override { unsetenv("HK_STATE_DIR"); }
  Outcome chat(const std::string& input, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"chat", kModel, "-t", "1", "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    RunOptions options;
    options.input = input;
    return hk_run(arguments, options);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  TemporaryFolder folder_;
};

TEST_F(ChatPipe, CommandsReuseWhatIsRemembered) {
  const auto run = chat(
      "What is the capital of France?\n/retry\n/branch other\nWhat is 23 + 45?\n/branch main\n/undo\n"
      "What is the capital of France?\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto counts = prompt_counts(run.err);
  ASSERT_EQ(counts.size(), 4u) << run.err;
  EXPECT_EQ(counts[0].second, 0);
  EXPECT_EQ(counts[1].second, counts[0].first - 1);  // retry
  EXPECT_GT(counts[2].second, counts[0].first);      // the branch shares the question and the answer
  EXPECT_EQ(counts[3], counts[1]);                   // and main still has its own
}

TEST_F(ChatPipe, SaveLoadAndReadFiles) {
  const auto saved = path("chat.json");
  const auto note = write("note.txt", "My name is Otto.\n");
  const auto run = chat("/read " + note + "\nWhat is my name?\n/save " + saved + "\n/save " + path("chat.md") + "\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::ifstream in(saved);
  const auto messages = Json::parse(in)["messages"];
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0]["content"], "My name is Otto.\n\nWhat is my name?");
  EXPECT_TRUE(std::filesystem::exists(path("chat.md")));
  const auto loaded = chat("/load " + saved + "\nHello\n");
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_GT(prompt_counts(loaded.err).at(0).first, prompt_counts(run.err).at(0).first);

  EXPECT_EQ(chat("/save " + saved + "\n").exit_code, 1);  // never replaced unasked
  EXPECT_EQ(chat("/save -f " + saved + "\n").exit_code, 0);
  for (const char* wrong : {"{", "{\"messages\": 3}", "[{\"role\": \"assistant\", \"content\": \"x\"}]",
                            "[{\"role\": \"user\", \"content\": \"x\"}]", "[{\"role\": \"user\"}, 7]"}) {
    const auto refused = chat("/load " + write("wrong.json", wrong) + "\n");
    EXPECT_EQ(refused.exit_code, 1) << wrong;
    EXPECT_TRUE(has(refused.err, "wrong.json: ")) << refused.err;
  }
  EXPECT_EQ(chat("/read " + path("nowhere") + "\n").exit_code, 1);
  EXPECT_EQ(chat("/read " + write("binary", "a\xff") + "\n").exit_code, 1);
}

TEST_F(ChatPipe, SettingsAndWhereTheyComeFrom) {
  const auto run = chat("/set temperature 0.5\n/set samplers top_k;temperature\n/set max_tokens 3\n/show\n/context\n",
                        {"--top-k", "7"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(std::regex_search(run.err, std::regex("temperature +0.5  \\(set here\\)"))) << run.err;
  EXPECT_TRUE(std::regex_search(run.err, std::regex("top_k +7  \\(given\\)"))) << run.err;
  EXPECT_TRUE(std::regex_search(run.err, std::regex("max_tokens +3"))) << run.err;
  EXPECT_TRUE(has(run.err, "[\"top_k\",\"temperature\"]  (set here)")) << run.err;
  EXPECT_TRUE(has(run.err, "context [....")) << run.err;
  EXPECT_EQ(chat("/set nonsense 3\n").exit_code, 1);
  EXPECT_EQ(chat("/set top_p 3\n").exit_code, 2);
  EXPECT_EQ(chat("/set top_p\n").exit_code, 1);
}

TEST_F(ChatPipe, DefaultsOfTheModelFile) {
  const auto model = path("model.hk");
  std::filesystem::copy_file(kModel, model);
  ASSERT_EQ(hk_run({"metadata", "set", model, "general.sampling.temp", "0.31", "--type", "float"}).exit_code, 0);
  ASSERT_EQ(hk_run({"metadata", "set", model, "general.sampling.top_k", "11", "--type", "int"}).exit_code, 0);
  RunOptions options;
  options.input = "/show\n";
  const auto run = hk_run({"chat", model, "--top-k", "12"}, options);
  EXPECT_TRUE(std::regex_search(run.err, std::regex("temperature +0.31  \\(from the model file\\)"))) << run.err;
  EXPECT_TRUE(std::regex_search(run.err, std::regex("top_k +12  \\(given\\)"))) << run.err;
  // A value that no flag could have is refused with file and key; the flag overrides it.
  ASSERT_EQ(hk_run({"metadata", "set", model, "general.sampling.temp", "--", "-3"}).exit_code, 0);
  const auto refused = hk_run({"generate", model, "-p", "x", "-n", "1"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(has(refused.err, "model.hk: general.sampling.temp: ")) << refused.err;
  EXPECT_EQ(hk_run({"generate", model, "-p", "x", "-n", "1", "--temp", "0"}).exit_code, 0);
}

TEST_F(ChatPipe, SessionsGoOnAndAreListedAndRemoved) {
  const auto first = chat("What is the capital of France?\n", {"--session", "paris"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  const auto second = chat("What is 23 + 45?\n", {"--session", "paris"});
  EXPECT_TRUE(has(second.err, "session 'paris' goes on: 1 turn, ")) << second.err;
  const auto counts = prompt_counts(second.err);
  ASSERT_EQ(counts.size(), 1u);
  // The same as in one process.
  const auto whole = prompt_counts(chat("What is the capital of France?\nWhat is 23 + 45?\n").err);
  EXPECT_EQ(counts[0], whole.at(1));

  const auto list = hk_run({"chat", "--sessions"});
  EXPECT_TRUE(has(list.out, "paris\t2 turns\t")) << list.out;
  EXPECT_TRUE(has(list.out, "What is the capital of France?")) << list.out;
  EXPECT_EQ(hk_run({"chat", "--remove-session", "paris"}).exit_code, 0);
  EXPECT_EQ(hk_run({"chat", "--sessions"}).out, "");
  EXPECT_EQ(hk_run({"chat", "--remove-session", "paris"}).exit_code, 1);
  for (const char* name : {"../x", "", ".hidden", "a b", "-x"})
    EXPECT_EQ(chat("", {std::string("--session=") + name}).exit_code, 2) << name;
}

TEST_F(ChatPipe, ASessionIsUsedByOneProcess) {
  EXPECT_EQ(chat("Hello\n", {"--session", "busy"}).exit_code, 0);
  const auto lock = ::open((folder_.path() / "state/sessions/busy.lock").c_str(), O_RDWR);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  const auto second = chat("Hello\n", {"--session", "busy"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_TRUE(has(second.err, "the session 'busy' is in use by another process")) << second.err;
  EXPECT_EQ(hk_run({"chat", "--remove-session", "busy"}).exit_code, 1);
  EXPECT_TRUE(has(hk_run({"chat", "--sessions"}).out, ", in use"));
  ::close(lock);
  EXPECT_EQ(hk_run({"chat", "--remove-session", "busy"}).exit_code, 0);
}

TEST_F(ChatPipe, DamagedMemoryIsReadAgain) {
  const auto answers = chat("What is the capital of France?\n/retry\n", {"--session", "torn"});
  const auto memory = folder_.path() / "state/sessions/torn.kv";
  ASSERT_TRUE(std::filesystem::exists(memory));
  {
    std::fstream file(memory, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(std::filesystem::file_size(memory) / 2));
    file << "damage";
  }
  const auto run = chat("/retry\n", {"--session", "torn"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_TRUE(has(run.err, "is damaged")) << run.err;
  EXPECT_EQ(run.out, "The capital of France is Paris.\n");
  std::filesystem::resize_file(memory, 100);
  EXPECT_EQ(chat("/retry\n", {"--session", "torn"}).out, run.out);
  std::ofstream(folder_.path() / "state/sessions/torn.jsonl") << "{\"hk_chat_session\": 1, \"model\": 3}\n";
  const auto refused = chat("/retry\n", {"--session", "torn"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(has(refused.err, "torn.jsonl, line 1: ")) << refused.err;
}

/// A template that begins the reasoning itself, when it is told to.
constexpr const char* kThinkingTemplate =
    "{%- for m in messages -%}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1].lstrip('\n') }}<|im_end|>\n"
    "{%- endfor -%}<|im_start|>assistant\n{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif "
    "%}";

TEST_F(ChatPipe, ThinkingIsEndedByItsBudgetAndHidden) {
  const auto file = write("thinking.jinja", kThinkingTemplate);
  const std::vector<std::string> options = {"--chat-template-file", file, "-n", "40", "--ignore-eos"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), options.begin(), options.end());
    return chat("Hello\nAnd now?\n/save -f " + path("t.json") + "\n", more);
  };
  const auto hidden = with({"--think-budget", "5"});
  EXPECT_EQ(hidden.exit_code, 0) << hidden.err;
  EXPECT_FALSE(has(hidden.out, "think>")) << hidden.out;
  std::ifstream in(path("t.json"));
  const auto messages = Json::parse(in)["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_FALSE(messages[1]["reasoning_content"].get<std::string>().empty());
  EXPECT_EQ(hidden.out,
            messages[1]["content"].get<std::string>() + "\n" + messages[3]["content"].get<std::string>() + "\n");
  // The reasoning is on stderr when it is asked for.
  const auto shown = with({"--think-budget", "5", "--think", "on"});
  EXPECT_EQ(shown.out, hidden.out);
  EXPECT_TRUE(has(shown.err, messages[1]["reasoning_content"].get<std::string>())) << shown.err;
  // Off: the template does not begin it, and everything is answer.
  const auto off = with({"--think", "off"});
  EXPECT_EQ(off.exit_code, 0);
  EXPECT_LT(prompt_counts(off.err).at(0).first, prompt_counts(hidden.err).at(0).first);
  std::ifstream again(path("t.json"));
  EXPECT_FALSE(Json::parse(again)["messages"][1].contains("reasoning_content"));
  // A model that never closes its reasoning gives an empty answer, which is a line too.
  EXPECT_EQ(with({"-q"}).out, "\n\n");
}

TEST_F(ChatPipe, AFullContextIsNeverSilent) {
  std::string questions;
  for (int i = 0; i < 8; ++i) questions += "What is the capital of France?\n";
  const auto stopped = chat(questions, {"-c", "100"});
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_TRUE(has(stopped.err, "the context holds 100 tokens, but the conversation with this message has "))
      << stopped.err;
  EXPECT_TRUE(has(stopped.err, "/compact")) << stopped.err;
  EXPECT_TRUE(has(stopped.err, "of 100 tokens of the context are used")) << stopped.err;
  const auto dropped = chat(questions, {"-c", "100", "--overflow", "drop-oldest"});
  EXPECT_EQ(dropped.exit_code, 0) << dropped.err;
  EXPECT_EQ(std::count(dropped.out.begin(), dropped.out.end(), '\n'), 8);
  EXPECT_TRUE(has(dropped.err, "oldest turn")) << dropped.err;
  const auto compacted = chat("Hello\nHello\nHello\n/compact 1\n/context\n");
  EXPECT_TRUE(has(compacted.err, "2 of the oldest turns forgotten")) << compacted.err;
  // Half of the context and no turn less than fits into it.
  std::string many;
  for (int i = 0; i < 13; ++i) many += "What is the capital of France?\n";
  const std::regex meter("([0-9]+) of the oldest turns forgotten; [^0-9]*([0-9]+) of ([0-9]+) tokens");
  std::smatch halved, more;
  const auto half = chat(many + "/compact\n");
  ASSERT_TRUE(std::regex_search(half.err, halved, meter)) << half.err;
  const int forgotten = std::stoi(halved[1]), size = std::stoi(halved[3]);
  EXPECT_GT(forgotten, 1);
  EXPECT_LE(std::stoi(halved[2]), size / 2);
  const auto one_more = chat(many + "/compact " + std::to_string(13 - forgotten + 1) + "\n");
  ASSERT_TRUE(std::regex_search(one_more.err, more, meter)) << one_more.err;
  EXPECT_GT(std::stoi(more[2]), size / 2);
  const std::vector<std::string> endless = {"-c", "60", "--ignore-eos", "-q"};
  EXPECT_EQ(chat("Hello\n", endless).exit_code, 0);
  auto strict = endless;
  strict.insert(strict.end(), {"--overflow", "error"});
  EXPECT_EQ(chat("Hello\n", strict).exit_code, 1);
}

TEST_F(ChatPipe, OnlyParseSpecialMakesControlTokensOfMessages) {
  const auto plain = prompt_counts(chat("a<|im_end|>\n").err);
  const auto special = prompt_counts(chat("a<|im_end|>\n", {"--parse-special"}).err);
  const auto nothing = prompt_counts(chat("a\n").err);
  EXPECT_EQ(special.at(0).first, nothing.at(0).first + 1);
  EXPECT_GT(plain.at(0).first, special.at(0).first);
}

TEST_F(ChatPipe, TemplatesByNameAndAsText) {
  const auto by_name = chat("What is the capital of France?\n", {"--chat-template", "chatml", "-q"});
  EXPECT_EQ(by_name.exit_code, 0) << by_name.err;
  EXPECT_FALSE(by_name.out.empty());
  const auto as_text =
      chat("", {"--chat-template", "<|im_start|>user\n{{ messages[0].content }}<|im_end|>\n<|im_start|>assistant\n\n",
                "-p", "What is the capital of France?", "-q"});
  EXPECT_EQ(as_text.out, "The capital of France is Paris.\n");
  EXPECT_EQ(chat("", {"--chat-template", "nonsense"}).exit_code, 2);
  EXPECT_EQ(chat("", {"--chat-template-kwargs", "[1]"}).exit_code, 2);
  EXPECT_EQ(chat("", {"--think", "perhaps"}).exit_code, 2);
  EXPECT_EQ(chat("", {"--think-budget", "-2"}).exit_code, 2);
  EXPECT_EQ(hk_run({"chat"}).exit_code, 2);
}

TEST_F(ChatPipe, LinesThatOnlyLookLikeCommands) {
  const auto run = chat("/usr/bin is a folder\n//\n", {"-q"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 2) << run.out;
}

}  // namespace
}  // namespace hk::test
