// The chat on a terminal, driven through tmux: typing, pasting, interrupting, resizing, history, completion, branches,
// and sessions that survive a kill.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/processor_time.h"
#include "tests/support/tmux.h"

namespace hk::test {
namespace {

using Json = nlohmann::json;

const std::string kModel = std::string(source_root()) + "/demo/hinoki.hk";

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t number = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++number;
  return number;
}

class ChatTerminal : public testing::Test {
 protected:
  void SetUp() override {
    if (!TmuxTerminal::available()) {
      if (std::getenv("HK_REQUIRE_FIXTURES") != nullptr) FAIL() << "tmux is not installed";
      GTEST_SKIP() << "tmux is not installed";
    }
  }
  std::unique_ptr<TmuxTerminal> chat(std::vector<std::string> more = {}, std::vector<std::string> environment = {},
                                     int columns = 80) {
    std::vector<std::string> arguments = {program(), "chat", kModel, "-t", "1", "--temp", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    environment.push_back("HK_STATE_DIR=" + (folder_.path() / "state").string());
    environment.push_back("TERM=screen-256color");
    auto terminal = std::make_unique<TmuxTerminal>(arguments, environment, columns);
    terminal->wait_for_prompt();
    return terminal;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  /// The messages of the conversation, by /save.
  Json messages(TmuxTerminal& terminal) {
    const auto file = path("saved" + std::to_string(++saved_) + ".json");
    terminal.enter("/save " + file);
    terminal.wait_for("written to " + file);
    terminal.wait_for_prompt();
    std::ifstream in(file);
    return Json::parse(in)["messages"];
  }

  TemporaryFolder folder_;
  int saved_ = 0;
};

TEST_F(ChatTerminal, TypingAndEditing) {
  const auto terminal = chat();
  terminal->wait_for("/help lists the commands");
  // A word in the middle is replaced: left over it, delete, and type another.
  terminal->type("What is the capitol of France?");
  for (int i = 0; i < 11; ++i) terminal->key("Left");
  terminal->key("BSpace");
  terminal->key("BSpace");
  terminal->type("a");
  terminal->type("l");
  terminal->key("Enter");
  terminal->wait_for("The capital of France is Paris.");
  terminal->wait_for_prompt();
  EXPECT_EQ(messages(*terminal)[0]["content"], "What is the capital of France?");
  terminal->key("C-d");
  terminal->wait_for("[exit 0]");
}

TEST_F(ChatTerminal, LinesOfAMessage) {
  const auto terminal = chat();
  terminal->paste("What is\nthe capital\nof France?");
  terminal->wait_for("  of France?");
  terminal->key("Enter");
  terminal->wait_for("Paris");
  terminal->wait_for_prompt();
  // Alt-Enter and a trailing backslash, and wide characters in the line.
  terminal->type("one \xe6\x97\xa5\xe6\x9c\xac");
  terminal->key("M-Enter");
  terminal->type("two\\");
  terminal->key("Enter");
  terminal->type("three");
  terminal->wait_for("  three");
  terminal->key("Enter");
  terminal->wait_until([](const std::string& now) { return now.rfind(">") > now.rfind("three"); });
  terminal->wait_for_prompt();
  const auto all = messages(*terminal);
  ASSERT_EQ(all.size(), 4u) << all;
  EXPECT_EQ(all[0]["content"], "What is\nthe capital\nof France?");
  EXPECT_EQ(all[2]["content"], "one \xe6\x97\xa5\xe6\x9c\xac\ntwo\nthree");
}

TEST_F(ChatTerminal, InterruptKeepsTheAnswerAndTwiceLeaves) {
  const auto terminal = chat({"--ignore-eos", "-c", "200000"});
  terminal->enter("Tell me a story.");
  terminal->wait_until([](const std::string& now) { return now.size() > 400; });
  terminal->key("C-c");
  terminal->wait_for("[stopped]");
  terminal->wait_for_prompt();
  const auto all = messages(*terminal);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_GT(all[1]["content"].get<std::string>().size(), 20u);
  // A discarded text does not count.
  terminal->type("half a th");
  terminal->wait_for("half a th");
  terminal->key("C-c");
  terminal->wait_for("half a th^C");
  terminal->wait_for_prompt();
  terminal->key("C-c");
  terminal->wait_for("Ctrl-C once more leaves");
  terminal->wait_for_prompt();
  terminal->key("C-c");
  terminal->wait_for("[exit 130]");
}

// The signal finds the program in the middle of a write.
TEST_F(ChatTerminal, InterruptWhileTheTerminalIsSlow) {
  const auto terminal = chat({"--ignore-eos", "-c", "200000"});
  terminal->enter("Tell me a story.");
  terminal->wait_until([](const std::string& now) { return now.size() > 400; });
  const int program = terminal->program();
  ASSERT_GT(program, 0);
  terminal->hold(true);
  // A program whose output nobody takes soon waits and uses no processor.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  double before = -1;
  for (int same = 0; same < 10 && std::chrono::steady_clock::now() < limit;) {
    const double now = processor_seconds(program);
    same = now == before ? same + 1 : 0;
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ::kill(program, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  terminal->hold(false);
  terminal->wait_for("[stopped]");
  terminal->wait_for_prompt();
  EXPECT_EQ(messages(*terminal).size(), 2u);
  terminal->key("C-d");
  terminal->wait_for("[exit 0]");
}

TEST_F(ChatTerminal, ResizeKeepsTheText) {
  const auto terminal = chat();
  const std::string begin = "These are many words that will not fit into a narrow window, MARK";
  terminal->type(begin);
  terminal->wait_for("MARK");
  terminal->resize(30, 12);
  terminal->type(", and some more");
  terminal->wait_for("more");
  terminal->resize(100, 20);
  terminal->type(", END");
  terminal->wait_for("END");
  terminal->wait_until([&](const std::string&) {
    const auto now = terminal->screen();
    return count(now, "MARK") == 1 && count(now, "END") == 1;
  });
  terminal->key("Enter");
  terminal->wait_until([](const std::string& now) { return now.rfind("\n>") > now.rfind("END"); });
  EXPECT_EQ(messages(*terminal)[0]["content"], begin + ", and some more, END");
}

TEST_F(ChatTerminal, HistoryOnDisk) {
  {
    const auto terminal = chat();
    terminal->enter("/system First entry.");
    terminal->wait_for_prompt();
    terminal->enter("/system Second entry.");
    terminal->wait_for_prompt();
    terminal->enter("/quit");
    terminal->wait_for("[exit 0]");
  }
  const auto terminal = chat();
  terminal->key("Up");
  terminal->wait_for("> /quit");
  terminal->key("Up");
  terminal->wait_for("> /system Second entry.");
  terminal->key("Up");
  terminal->wait_for("> /system First entry.");
  terminal->key("Down");
  terminal->wait_for("> /system Second entry.");
  terminal->key("C-u");
  terminal->wait_for_prompt();
  terminal->key("C-r");
  terminal->type("First");
  terminal->wait_for("(search) First: /system First entry.");
  terminal->key("Enter");
  terminal->wait_for_prompt();
  terminal->enter("/system");
  terminal->wait_for("\nFirst entry.");
}

TEST_F(ChatTerminal, Completion) {
  const auto terminal = chat();
  terminal->type("/he");
  terminal->key("Tab");
  terminal->wait_for("> /help");
  terminal->key("Enter");
  terminal->wait_for("/undo");
  terminal->wait_for_prompt();
  terminal->type("/s");
  terminal->key("Tab");
  terminal->key("Tab");
  terminal->wait_for("/save  /set  /show  /stats  /system");
  terminal->type("et temp");
  terminal->key("Tab");
  terminal->wait_for("> /set temperature");
  terminal->type("0.25");
  terminal->key("Enter");
  terminal->wait_for_prompt();
  terminal->enter("/show");
  terminal->wait_for("0.25  (set here)");
  terminal->enter("/nonsense");
  terminal->wait_for("There is no command /nonsense");
}

TEST_F(ChatTerminal, UndoRetryEditAndBranch) {
  std::ofstream(path("editor.sh")) << "#!/bin/sh\nsed -i s/France/Japan/ \"$1\"\n";
  std::filesystem::permissions(path("editor.sh"), std::filesystem::perms::owner_all);
  const auto terminal = chat({}, {"EDITOR=" + path("editor.sh"), "VISUAL="});
  terminal->enter("What is the capital of France?");
  terminal->wait_for("Paris");
  terminal->wait_for_prompt();
  terminal->enter("/branch other");
  terminal->wait_for("The new branch 'other'");
  terminal->wait_for_prompt();
  terminal->enter("/edit");
  terminal->wait_for("Tokyo");
  terminal->wait_for_prompt();
  auto all = messages(*terminal);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["content"], "What is the capital of Japan?");
  terminal->enter("/branch main");
  terminal->wait_for("Back in the branch 'main' (1 turn");
  terminal->wait_for_prompt();
  terminal->enter("/retry");
  terminal->wait_until([](const std::string& now) { return count(now, "The capital of France is Paris.") == 2; });
  terminal->wait_for_prompt();
  // All but the last token of the prompt was remembered.
  terminal->enter("/stats");
  terminal->wait_for("in all 3 answers");
  const auto screen = terminal->text();
  const auto at = screen.rfind("prompt ");
  int prompt = 0, cached = 0;
  ASSERT_EQ(std::sscanf(screen.c_str() + at, "prompt %d tokens (%d cached)", &prompt, &cached), 2) << screen;
  EXPECT_EQ(cached, prompt - 1);
  terminal->enter("/undo");
  terminal->wait_for("Forgotten: What is the capital of France?");
  terminal->enter("/undo");
  terminal->wait_for("Nothing was asked yet.");
  terminal->enter("/branch");
  terminal->wait_for("* main                 0 turns");
  terminal->enter("/branch -d other");
  terminal->wait_for("The branch 'other' is removed.");
}

TEST_F(ChatTerminal, SessionGoesOnAfterAKill) {
  const std::vector<std::string> options = {"--session", "work"};
  {
    const auto terminal = chat(options);
    terminal->enter("My name is Otto.");
    terminal->wait_until([](const std::string& now) { return now.rfind("\n>") > now.rfind("Otto."); });
    terminal->wait_for_prompt();
    const int process = terminal->program();
    ASSERT_GT(process, 0);
    ::kill(process, SIGKILL);
    terminal->wait_for("[exit 137]");
  }
  {
    const auto terminal = chat({"--session", "work", "--ignore-eos", "-c", "200000"});
    terminal->wait_for("session 'work' goes on: 1 turn, ");
    // Another context: what the model remembers is of no use, and that is said.
    terminal->wait_for("is of another model, context size");
    terminal->enter("Tell me a story.");
    terminal->wait_until([](const std::string& now) { return now.size() > now.find("a story.") + 300; });
    ::kill(terminal->program(), SIGKILL);
    terminal->wait_for("[exit 137]");
  }
  const auto terminal = chat(options);
  terminal->wait_for("session 'work' goes on: 2 turns, ");
  terminal->wait_for("the latest answer was cut when the program ended");
  const auto all = messages(*terminal);
  ASSERT_EQ(all.size(), 4u) << all;
  EXPECT_GT(all[3]["content"].get<std::string>().size(), 100u);
  terminal->enter("/undo");
  terminal->wait_for("Forgotten: Tell me a story.");
  terminal->wait_for_prompt();
  terminal->enter("What is my name?");
  terminal->wait_until([](const std::string& now) { return now.rfind("Otto") > now.rfind("What is my name?"); });
}

TEST_F(ChatTerminal, MemoryComesBackFromDisk) {
  std::string first;
  {
    const auto terminal = chat({"--session", "memory"});
    terminal->enter("What is the capital of France?");
    terminal->wait_for("Paris");
    terminal->wait_for_prompt();
    terminal->key("C-d");
    terminal->wait_for("[exit 0]");
  }
  const auto terminal = chat({"--session", "memory"});
  terminal->wait_for("session 'memory' goes on: 1 turn, ");
  terminal->enter("/retry");
  terminal->wait_for("Paris");
  terminal->wait_for_prompt();
  terminal->enter("/stats");
  terminal->wait_for("in all 1 answers");
  const auto screen = terminal->text();
  int prompt = 0, cached = 0;
  ASSERT_EQ(std::sscanf(screen.c_str() + screen.rfind("prompt "), "prompt %d tokens (%d cached)", &prompt, &cached), 2);
  EXPECT_EQ(cached, prompt - 1) << screen;
}

TEST_F(ChatTerminal, ReasoningIsDimmedCollapsedOrHidden) {
  std::ofstream(path("think.jinja"))
      << "{%- for m in messages -%}<|im_start|>{{ m.role }}\n{{ m.content.split('</think>')[-1].lstrip('\n') }}"
         "<|im_end|>\n{%- endfor -%}<|im_start|>assistant\n<think>\n";
  const auto terminal =
      chat({"--chat-template-file", path("think.jinja"), "--think-budget", "5", "-n", "30", "--ignore-eos"});
  const auto ask = [&](const std::string& question) {
    terminal->enter(question);
    terminal->wait_until([&](const std::string& now) {
      const auto at = now.find(question);
      return at != std::string::npos && now.find("[cut at the limit", at) != std::string::npos;
    });
    terminal->wait_for_prompt();
    const auto screen = terminal->text(true);
    return screen.substr(screen.find(question));
  };
  EXPECT_NE(ask("Question one?").find("\x1b[2m"), std::string::npos);
  terminal->enter("/think collapse");
  terminal->wait_for("no switch for thinking");
  EXPECT_NE(ask("Question two?").find("[thought: "), std::string::npos);
  terminal->enter("/think hide");
  const auto hidden = ask("Question three?");
  EXPECT_EQ(hidden.find("[thought: "), std::string::npos) << hidden;
  EXPECT_EQ(hidden.find("\x1b[2m"), std::string::npos) << hidden;
  EXPECT_FALSE(messages(*terminal)[5]["reasoning_content"].get<std::string>().empty());
}

TEST_F(ChatTerminal, ColoursOnlyWhereTheyAreWanted) {
  for (const bool colours : {true, false}) {
    const auto terminal = chat({}, {colours ? "NO_COLOR=" : "NO_COLOR=1"});
    const auto screen = terminal->text(true);
    EXPECT_EQ(screen.find("\x1b[1m>") != std::string::npos, colours) << screen;
  }
}

}  // namespace
}  // namespace hk::test
