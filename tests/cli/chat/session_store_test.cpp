// Session files: what was appended, what a kill has cut, and what is refused.
#include "cli/chat/session_store.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/error.h"
#include "cli/chat/chat_json.h"
#include "tests/support/fixtures.h"

namespace hk::test {
namespace {

using cli::ChatState;
using cli::ChatTurn;
using cli::SessionFile;

class SessionFiles : public testing::Test {
 protected:
  void SetUp() override { setenv("HK_STATE_DIR", folder_.path().c_str(), 1); }
  void TearDown() override { unsetenv("HK_STATE_DIR"); }
  std::string text(const std::string& name) const {
    std::ifstream in(folder_.path() / "sessions" / (name + ".jsonl"), std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  TemporaryFolder folder_;
};

ChatTurn turn(const std::string& question, const std::string& answer) {
  ChatTurn out;
  out.question = question;
  out.answer = answer;
  out.ids = {3, 1, 4};
  return out;
}

TEST_F(SessionFiles, WhatHappenedIsThereAgain) {
  ChatState state;
  {
    SessionFile file("a", "model");
    EXPECT_FALSE(file.existed());
    file.question_asked("one?");
    file.text_came("1", false);
    state.branch().turns.push_back(turn("one?", "1 \xc3\xa9\n"));
    file.turn_ended(state);
    state.branches.push_back(state.branch());
    state.branches.back().name = "other";
    state.branches.back().system = "Be kind.";
    state.current = 1;
    file.state_changed(state);
    state.branch().turns.push_back(turn("two?", "2"));
    state.branch().turns.back().reasoning = "hm";
    file.turn_ended(state);
  }
  SessionFile file("a", "model");
  EXPECT_TRUE(file.existed());
  EXPECT_FALSE(file.content().answer_cut);
  EXPECT_EQ(cli::state_json(file.content().state), cli::state_json(state));
}

TEST_F(SessionFiles, AnAnswerThatWasCut) {
  {
    SessionFile file("a", "model");
    file.question_asked("Tell me.");
    file.text_came("Thinking", true);
    file.text_came("Once upon ", false);
    file.text_came("a time", false);
  }
  SessionFile file("a", "model");
  EXPECT_TRUE(file.content().answer_cut);
  const auto& turns = file.content().state.branch().turns;
  ASSERT_EQ(turns.size(), 1u);
  EXPECT_EQ(turns[0].question, "Tell me.");
  EXPECT_EQ(turns[0].reasoning, "Thinking");
  EXPECT_EQ(turns[0].answer, "Once upon a time");
  EXPECT_EQ(turns[0].ending, "cut");
}

TEST_F(SessionFiles, AnyCutOfTheFileIsReadUpToItsLastWholeLine) {
  ChatState state;
  std::size_t header = 0;
  {
    SessionFile file("a", "model");
    header = text("a").size();
    for (const char* question : {"one", "two", "three"}) {
      file.question_asked(question);
      file.text_came("answer to ", false);
      state.branch().turns.push_back(turn(question, std::string("answer to ") + question));
      file.turn_ended(state);
    }
  }
  const std::string whole = text("a");
  std::size_t before = 0;
  for (std::size_t size = header; size <= whole.size(); ++size) {
    const auto content = cli::parse_session(whole.substr(0, size), "a.jsonl");
    const auto turns = content.state.branch().turns.size();
    EXPECT_GE(turns, before);
    before = std::max(before, turns);
    for (std::size_t i = 0; i + (content.answer_cut ? 1 : 0) < turns; ++i)
      EXPECT_EQ(content.state.branch().turns[i].answer, state.branch().turns[i].answer);
  }
  EXPECT_EQ(before, 3u);
  for (std::size_t size = 0; size + 1 < header; ++size)
    EXPECT_THROW(cli::parse_session(whole.substr(0, size), "a.jsonl"), Error) << size;
}

TEST_F(SessionFiles, HostileFilesAreRefusedWithFileAndLine) {
  const std::string header =
      R"({"hk_chat_session":1,"model":"m","state":{"current":"main","branches":[{"name":"main","system":"","turns":[]}]}})"
      "\n";
  EXPECT_NO_THROW(cli::parse_session(header, "f"));
  const auto refused = [](const std::string& text, const std::string& part) {
    try {
      cli::parse_session(text, "f.jsonl");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  refused("", "empty");
  refused("{}\n", "line 1: this is no session file");
  refused("[]\n", "line 1");
  refused(R"({"hk_chat_session":2})"
          "\n",
          "version");
  refused(R"({"hk_chat_session":1,"model":3,"state":{}})"
          "\n",
          "line 1");
  refused(R"({"hk_chat_session":1,"state":{"current":"x","branches":[]}})"
          "\n",
          "there is no branch");
  refused(R"({"hk_chat_session":1,"state":{"current":"x","branches":[{"name":"a","system":"","turns":[]}]}})"
          "\n",
          "there is no branch 'x'");
  refused(R"({"hk_chat_session":1,"state":{"current":"a","branches":[{"name":"a","system":"","turns":[]},)"
          R"({"name":"a","system":"","turns":[]}]}})"
          "\n",
          "two branches");
  refused(header + "nonsense\n", "line 2");
  refused(header + R"({"turn":{"question":1,"answer":"x"}})"
                   "\n",
          "line 2: 'question'");
  refused(header + R"({"other":1})"
                   "\n",
          "line 2");
  refused(header + R"({"turn":{"question":"q","answer":"x","ids":["a"]}})"
                   "\n",
          "line 2");
  refused(header + "{\"turn\":" + std::string(100000, '[') + "\n", "line 2");
  // Random damage: a sentence or a content, nothing else.
  std::mt19937 random(11);
  const std::string whole = header + R"({"question":"q"})"
                                     "\n"
                                     R"({"turn":{"question":"q","answer":"a"}})"
                                     "\n";
  for (int round = 0; round < 500; ++round) {
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    try {
      cli::parse_session(damaged, "f");
    } catch (const Error&) {
    }
  }
}

TEST(ChatMessages, ThereAndBack) {
  cli::ChatBranch branch;
  branch.system = "Be kind.";
  branch.turns = {turn("one?", "1"), turn("two?", "2")};
  branch.turns[1].reasoning = "hm";
  const auto back = cli::branch_from_messages(cli::messages_text(branch));
  EXPECT_EQ(back.system, branch.system);
  ASSERT_EQ(back.turns.size(), 2u);
  EXPECT_EQ(back.turns[1].answer, "2");
  EXPECT_EQ(back.turns[1].reasoning, "hm");
  EXPECT_EQ(back.turns[1].ending, "end");
}

}  // namespace
}  // namespace hk::test
