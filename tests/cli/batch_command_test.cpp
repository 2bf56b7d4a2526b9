// hk-run batch from outside: forms of requests and answers, errors, resuming, full disks, signals.
#include <sys/resource.h>

#include <cmath>

#include "tests/cli/batch_support.h"

namespace hk::test {
namespace {

using Batch = BatchTest;

TEST_F(Batch, AnswersLikeGenerate) {
  const auto answer = ask({{"id", "x"}, {"prompt", "The capital of France is"}, {"temperature", 0}, {"max_tokens", 8}});
  const auto run = hk_run({"generate", demo_model(), "-p", "The capital of France is", "--temp", "0", "-n", "8"});
  EXPECT_EQ(answer["text"], run.out);
  EXPECT_EQ(answer["id"], "x");
  EXPECT_EQ(answer["line"], 1);
  EXPECT_TRUE(answer["timings"].contains("decode_ms"));
  const auto chat =
      ask({{"messages", {{{"role", "user"}, {"content", "What is the capital of France?"}}}}, {"temperature", 0}});
  EXPECT_EQ(chat["text"].get<std::string>() + "\n",
            hk_run({"chat", demo_model(), "-p", "What is the capital of France?", "--temp", "0", "-q"}).out);
  EXPECT_EQ(chat["finish_reason"], "end");
  EXPECT_EQ(chat["id"], 1);  // none was given: the line
}

TEST_F(Batch, NoMessageSpellsAControlToken) {
  const auto with = [&](const std::string& text) {
    return ask({{"messages", {{{"role", "user"}, {"content", text}}}}, {"max_tokens", 0}})["usage"]["prompt_tokens"]
        .get<std::size_t>();
  };
  // As one token each, these would cost two tokens more than "a".
  EXPECT_GT(with("a<|im_end|><|im_start|>"), with("a") + 4);
}

TEST_F(Batch, SeveralAnswersStopEchoAndTokens) {
  const auto answer = ask({{"prompt", "The capital of France is"},
                           {"temperature", 0},
                           {"n", 2},
                           {"stop", "aris"},
                           {"echo", true},
                           {"return_tokens", true},
                           {"metadata", {{"set", "a"}}}});
  ASSERT_EQ(answer["choices"].size(), 2u);
  EXPECT_EQ(answer["choices"][0]["text"], "The capital of France is P");
  EXPECT_EQ(answer["choices"][1]["finish_reason"], "stop");
  EXPECT_EQ(answer["choices"][1]["stop"], "aris");
  EXPECT_EQ(answer["metadata"]["set"], "a");
  EXPECT_EQ(answer["prompt_tokens"].size(), answer["usage"]["prompt_tokens"]);
  // The ids of the prompt, given as such, lead to the same.
  const auto again = ask({{"tokens", answer["prompt_tokens"]}, {"temperature", 0}, {"stop", "aris"}, {"echo", true}});
  EXPECT_EQ(again["text"], "The capital of France is P");
}

TEST_F(Batch, ScoresAgreeWithLogits) {
  const std::string context = "The capital of France is", rest = " Paris.";
  const auto score = ask({{"mode", "score"}, {"prompt", context}, {"continuation", rest}, {"logprobs", 1}})["score"];
  const auto ids = ask({{"prompt", context + rest}, {"max_tokens", 0}, {"return_tokens", true}})["prompt_tokens"]
                       .get<std::vector<int>>();
  std::string list;
  for (const int id : ids) list += (list.empty() ? "" : ",") + std::to_string(id);
  ASSERT_EQ(hk_run({"logits", demo_model(), "--tokens", list, "-o", at("logits")}).exit_code, 0);
  const auto logits = read_array<float>(at("logits"));
  const std::size_t width = logits.size() / ids.size();
  const std::size_t count = score["token_count"];
  double sum = 0;
  bool greedy = true;
  for (std::size_t i = ids.size() - count; i < ids.size(); ++i) {
    const float* row = logits.data() + (i - 1) * width;
    double total = 0;
    for (std::size_t k = 0; k < width; ++k) total += std::exp(static_cast<double>(row[k]));
    sum += static_cast<double>(row[ids[i]]) - std::log(total);
    greedy = greedy && std::max_element(row, row + width) - row == ids[i];
  }
  EXPECT_NEAR(score["logprob"].get<double>(), sum, 1e-4);
  EXPECT_EQ(score["greedy"].get<bool>(), greedy);
  EXPECT_EQ(score["logprobs"].size(), count);
  // All continuations at once; the whole text; the older OpenAI way.
  const auto several =
      ask({{"mode", "score"}, {"prompt", context}, {"continuations", {rest, " London.", ""}}})["scores"];
  ASSERT_EQ(several.size(), 3u);
  EXPECT_EQ(several[0]["logprob"], score["logprob"]);
  EXPECT_LT(several[1]["logprob"], several[0]["logprob"]);
  EXPECT_EQ(several[2]["logprob"], 0);
  const auto whole = ask({{"mode", "score"}, {"prompt", context + rest}, {"logprobs", 0}})["score"];
  EXPECT_EQ(whole["token_count"], ids.size() - 1);
  const auto openai = ask({{"custom_id", "o"},
                           {"url", "/v1/completions"},
                           {"body", {{"prompt", context + rest}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}}}});
  const auto chances = openai["response"]["body"]["choices"][0]["logprobs"]["token_logprobs"];
  ASSERT_EQ(chances.size(), ids.size());
  EXPECT_TRUE(chances[0].is_null());
  double tail = 0;
  for (std::size_t i = ids.size() - count; i < ids.size(); ++i) tail += chances[i].get<double>();
  EXPECT_NEAR(tail, sum, 1e-4);
}

TEST_F(Batch, OpenAIForm) {
  const auto answer =
      ask({{"custom_id", "o1"},
           {"method", "POST"},
           {"url", "/v1/chat/completions"},
           {"body",
            {{"model", "any"},
             {"messages",
              {{{"role", "user"},
                {"content",
                 {{{"type", "text"}, {"text", "What is the capital "}}, {{"type", "text"}, {"text", "of France?"}}}}}}},
             {"temperature", 0},
             {"top_p", nullptr},
             {"stream", false},
             {"logprobs", true},
             {"top_logprobs", 2}}}});
  EXPECT_EQ(answer["custom_id"], "o1");
  EXPECT_TRUE(answer["error"].is_null());
  EXPECT_EQ(answer["response"]["status_code"], 200);
  const auto& body = answer["response"]["body"];
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "The capital of France is Paris.");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["choices"][0]["logprobs"]["content"][0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(body["usage"]["total_tokens"].get<int>(),
            body["usage"]["prompt_tokens"].get<int>() + body["usage"]["completion_tokens"].get<int>());
  const auto refused =
      ask({{"custom_id", "o2"},
           {"url", "/v1/chat/completions"},
           {"body",
            {{"messages", {{{"role", "user"}, {"content", "x"}}}}, {"response_format", {{"type", "json_object"}}}}}});
  EXPECT_TRUE(refused["response"].is_null());
  EXPECT_EQ(refused["error"]["code"], "invalid_request");
  const auto elsewhere = ask({{"custom_id", "o3"}, {"url", "/v1/embeddings"}, {"body", {{"input", "x"}}}});
  EXPECT_NE(elsewhere["error"]["message"].get<std::string>().find("/v1/embeddings"), std::string::npos);
}

TEST_F(Batch, ErrorsAreRecordsAndTheRestGoesOn) {
  std::string deep(100000, '[');
  std::string keys = "{";
  for (int i = 0; i < 3000; ++i) keys += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
  std::string ones;
  for (int i = 0; i < 1'100'000; ++i) ones += ",1";
  std::string long_prompt;
  for (int i = 0; i < 600; ++i) long_prompt += "word ";
  const Lines lines = {
      R"({"id":"a","prompt":"Hello","max_tokens":2})",
      R"({"id":"a","prompt":"Hello","max_tokens":2})",
      "{broken",
      "",
      R"([1,2])",
      deep,
      keys + "}",
      R"({"id":"empty","prompt":"","add_special":false})",
      R"({"id":"none"})",
      R"({"id":"two","prompt":"x","tokens":[1]})",
      R"({"id":"typo","prompt":"x","temprature":1})",
      R"({"id":"hot","prompt":"x","temperature":"hot"})",
      R"({"id":"range","prompt":"x","top_p":7})",
      R"({"id":"token","tokens":[999999]})",
      R"({"id":"role","messages":[{"content":"x"}]})",
      R"({"id":"image","messages":[{"role":"user","content":[{"type":"image_url"}]}]})",
      R"({"id":"many","prompt":"x","n":1000000000})",
      R"({"id":{"x":1},"prompt":"x"})",
      "{\"id\":\"utf\",\"prompt\":\"\xff\"}",
      R"({"id":"surrogate","prompt":"\ud800"})",
      Json{{"id", "long"}, {"prompt", long_prompt}}.dump(),
      R"({"id":"z","prompt":"Hello","max_tokens":2})",
      R"({"id":"big","prompt":"x","top_p":1e999})",
      R"({"id":"values","tokens":[1)" + ones + "]}",
      R"({"custom_id":"form","body":{"prompt":"x","response_format":{"type":5}}})",
  };
  write_lines(at("in.jsonl"), lines);
  const auto run = batch("in.jsonl", "out");
  EXPECT_EQ(run.exit_code, 1) << run.err;
  std::map<int, Json> by_line;
  for (const auto& answer : answers_in(at("out"))) {
    if (!answer.contains("line")) {
      EXPECT_NE(answer["error"]["message"].get<std::string>().find("response_format"), std::string::npos);
      continue;
    }
    by_line[answer["line"].get<int>()] = answer;
  }
  ASSERT_EQ(by_line.size(), lines.size() - 2);  // all but the blank one and that in the other form
  EXPECT_TRUE(by_line[1].contains("text"));
  EXPECT_TRUE(by_line[22].contains("text"));
  const auto expect_error = [&](int line, const char* type, const char* word) {
    const auto& answer = by_line[line];
    ASSERT_TRUE(answer.contains("error")) << line;
    EXPECT_EQ(answer["error"]["type"], type) << line;
    EXPECT_NE(answer["error"]["message"].get<std::string>().find(word), std::string::npos) << answer.dump();
    EXPECT_NE(answer["error"]["message"].get<std::string>().find("line " + std::to_string(line)), std::string::npos);
  };
  expect_error(2, "duplicate_id", "in line 1");
  expect_error(3, "malformed", "JSON");
  expect_error(5, "malformed", "object");
  expect_error(6, "malformed", "levels");
  expect_error(7, "malformed", "keys");
  expect_error(8, "invalid_request", "empty");
  expect_error(9, "invalid_request", "nothing to answer");
  expect_error(10, "invalid_request", "exclude");
  expect_error(11, "invalid_request", "temprature");
  expect_error(12, "invalid_request", "temperature");
  expect_error(13, "invalid_request", "top-p");
  expect_error(14, "invalid_request", "999999");
  expect_error(15, "invalid_request", "messages[0]");
  expect_error(16, "invalid_request", "text parts");
  expect_error(17, "invalid_request", "'n'");
  expect_error(18, "malformed", "'id'");
  expect_error(19, "malformed", "JSON");
  expect_error(20, "malformed", "JSON");
  expect_error(21, "invalid_request", "the context holds 512");
  expect_error(23, "malformed", "JSON: number overflow");
  expect_error(24, "malformed", "values");
  // Going on finds all of it done, and still says that something failed.
  const auto before = file_text(at("out"));
  EXPECT_EQ(batch("in.jsonl", "out", {"--resume"}).exit_code, 1);
  EXPECT_EQ(batch("in.jsonl", "out", {"--resume", "--errors-ok"}).exit_code, 0);
  EXPECT_EQ(file_text(at("out")), before);
  // Trying again makes new errors of the old ones, and keeps the answers.
  EXPECT_EQ(batch("in.jsonl", "out", {"--retry-failed"}).exit_code, 1);
  EXPECT_EQ(essence(at("out")).size(), lines.size() - 1);
}

TEST_F(Batch, ALineBeyondTheLimitIsPassedOver) {
  {
    std::ofstream out(at("in.jsonl"), std::ios::binary);
    out << R"({"id":"long","prompt":")" << std::string(std::size_t{17} << 20, 'x') << "\"}\n";
    out << R"({"id":"b","prompt":"Hello","max_tokens":2})";  // and no line end
  }
  EXPECT_EQ(batch("in.jsonl", "out").exit_code, 1);
  const auto answers = answers_in(at("out"));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_NE(answers[0]["error"]["message"].get<std::string>().find("line 1: longer"), std::string::npos);
  EXPECT_EQ(answers[1]["id"], "b");
}

TEST_F(Batch, TextTemplatesAndChat) {
  write_lines(at("in.txt"), {"Hello", "", "{not json\r", "Once upon a time"});
  EXPECT_EQ(batch("in.txt", "out", {"--text", "-n", "2", "--ordered"}).exit_code, 0);
  auto answers = answers_in(at("out"));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[2]["id"], 4);
  write_lines(at("in.jsonl"), {R"({"q":"What is the capital of France?","more":{"a":["x","Paris"]},"n_people":7})"});
  EXPECT_EQ(batch("in.jsonl", "out", {"--force", "--prompt-template", "{q}", "--chat", "--temp", "0"}).exit_code, 0);
  EXPECT_EQ(answers_in(at("out"))[0]["text"], "The capital of France is Paris.");
  EXPECT_EQ(batch("in.jsonl", "out",
                  {"--force", "--prompt-template", "Q: {q}\\nA: {{{more.a.1}}} {n_people}", "-n", "0", "--temp", "0"})
                .exit_code,
            0);
  const auto direct = ask({{"prompt", "Q: What is the capital of France?\nA: {Paris} 7"}, {"max_tokens", 0}});
  EXPECT_EQ(answers_in(at("out"))[0]["usage"], direct["usage"]);
  const auto missing = batch("in.jsonl", "out", {"--force", "--prompt-template", "{nobody}"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(answers_in(at("out"))[0]["error"]["message"].get<std::string>().find("'nobody'"), std::string::npos);
  EXPECT_EQ(
      batch("in.jsonl", "out",
            {"--force", "--prompt-template", "The capital of France is", "--continuation-template", " {more.a.1}"})
          .exit_code,
      0);
  EXPECT_GT(answers_in(at("out"))[0]["score"]["logprob"].get<double>(), -1);
  for (const char* bad : {"{", "}", "{}", "a {b"})
    EXPECT_EQ(batch("in.jsonl", "out", {"--force", "--prompt-template", bad}).exit_code, 2) << bad;
}

TEST_F(Batch, StreamsInAndOut) {
  RunOptions options;
  options.input = "Hello\nOnce upon a time\n";
  const auto run = hk_run({"batch", "-m", demo_model(), "-", "-o", "-", "--text", "-n", "3", "-q"}, options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(lines_of(run.out).size(), 2u);
}

TEST_F(Batch, AnOutputIsNeverLostByAccident) {
  write_lines(at("in.jsonl"), {R"({"id":1,"prompt":"Hello","max_tokens":2})"});
  ASSERT_EQ(batch("in.jsonl", "out").exit_code, 0);
  const auto before = file_text(at("out"));
  const auto refused = batch("in.jsonl", "out");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--resume"), std::string::npos);
  EXPECT_EQ(file_text(at("out")), before);
  // Something else under that name is not touched, not even with --resume.
  const auto input = file_text(at("in.jsonl"));
  write_lines(at("other.jsonl"), {R"({"id":1,"prompt":"Hello"})"});
  EXPECT_EQ(batch("other.jsonl", "in.jsonl", {"--resume"}).exit_code, 1);
  EXPECT_EQ(file_text(at("in.jsonl")), input);
  std::ofstream(at("binary"), std::ios::binary) << "\x7f"
                                                   "ELF and so on";
  EXPECT_EQ(batch("in.jsonl", "binary", {"--resume"}).exit_code, 1);
  EXPECT_NE(file_text(at("binary")), "");
  EXPECT_EQ(batch("in.jsonl", "out", {"--force"}).exit_code, 0);
}

TEST_F(Batch, WhatIsReadIsNeverWritten) {
  const Lines lines = {R"({"id":1,"prompt":"Hello","max_tokens":2})"};
  write_lines(at("in.jsonl"), lines);
  std::filesystem::create_symlink("in.jsonl", at("link"));
  std::filesystem::copy_file(demo_model(), at("model.hk"));
  const auto refused = [&](const Outcome& run) {
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find("is read from"), std::string::npos) << run.err;
    EXPECT_EQ(file_text(at("in.jsonl")), lines[0] + "\n");
  };
  refused(batch("in.jsonl", "in.jsonl", {"--force"}));
  refused(batch("in.jsonl", "link", {"--resume"}));
  refused(hk_run({"batch", at("model.hk"), at("in.jsonl"), "-o", at("model.hk"), "--force"}));
  EXPECT_EQ(file_text(at("model.hk")), file_text(demo_model()));
  refused(run_program({"/bin/sh", "-c",
                       std::string(program()) + " batch " + demo_model() + " - -o " + at("in.jsonl").string() +
                           " --force < " + at("in.jsonl").string()}));
  ASSERT_EQ(batch("in.jsonl", "out").exit_code, 0);
  refused(hk_run({"batch", "merge", at("in.jsonl"), at("out"), "--input", at("in.jsonl"), "--force"}));
  // An input that cannot be read costs no answers either.
  const auto before = file_text(at("out"));
  EXPECT_EQ(hk_run({"batch", demo_model(), at("nowhere"), "-o", at("out"), "--force"}).exit_code, 1);
  EXPECT_EQ(file_text(at("out")), before);
}

TEST_F(Batch, ANamedPipeWaitsForItsReader) {
  write_lines(at("in.jsonl"), {R"({"id":1,"prompt":"Hello","max_tokens":2})"});
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  Background run(arguments("in.jsonl", "pipe", {}), at("err"));
  ::usleep(300'000);
  EXPECT_TRUE(run.running());
  const auto text = file_text(at("pipe"));
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(Json::parse(text)["id"], 1);
}

TEST_F(Batch, ClosedStreamsAreNoFiles) {
  write_lines(at("in.jsonl"), {R"({"id":1,"prompt":"Hello","max_tokens":2})"});
  const auto with = [&](const std::string& in, const std::string& out, const std::string& streams) {
    const std::string command = std::string("exec ") + program() + " batch " + demo_model() + " " + in + " -o " + out;
    return run_program({"/bin/sh", "-c", command + " " + streams}).exit_code;
  };
  EXPECT_EQ(with(at("in.jsonl"), at("out"), "2>&-"), 0);
  EXPECT_EQ(answers_in(at("out")).size(), 1u);  // and no statistics
  EXPECT_EQ(with("-", at("out2"), "<&-"), 1);
  EXPECT_EQ(with(at("in.jsonl"), "-", ">&-"), 3);
}

TEST_F(Batch, DamagedLinesAreLeftOutAndDoneAgain) {
  write_lines(at("in.jsonl"), mixed_requests(10));
  ASSERT_EQ(batch("in.jsonl", "whole").exit_code, 0);
  auto lines = lines_of(file_text(at("whole")));
  lines[3].assign(lines[3].size(), '\0');
  lines[5].resize(lines[5].size() / 2);
  lines.push_back(lines[7]);  // twice
  write_lines(at("out"), lines);
  std::ofstream(at("out"), std::ios::app | std::ios::binary) << "{\"id\":\"req";
  const auto run = batch("in.jsonl", "out", {"--resume"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("line 4"), std::string::npos) << run.err;
  EXPECT_EQ(essence(at("out")), essence(at("whole")));
}

TEST_F(Batch, TwoProcessesDoNotShareAnOutput) {
  write_lines(at("in.jsonl"), {R"({"id":1,"prompt":"Hello","ignore_eos":true})"});
  Background first(arguments("in.jsonl", "out", {"-c", "100000"}), at("err"));
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(at("out")); }));
  ::usleep(100'000);
  const auto second = batch("in.jsonl", "out", {"--resume"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("another process"), std::string::npos) << second.err;
}

/// A limit on the size of files is a disk that can be filled, and emptied again.
TEST_F(Batch, AFullDiskStopsAtAWholeLine) {
  write_lines(at("in.jsonl"), mixed_requests(60));
  ASSERT_EQ(batch("in.jsonl", "whole").exit_code, 0);
  std::string command = "ulimit -f 4; exec \"$0\" \"$@\"";  // blocks of 512 bytes
  std::vector<std::string> all = {"/bin/sh", "-c", command, program()};
  for (const auto& argument : arguments("in.jsonl", "out", {"--disk-full", "stop"})) all.push_back(argument);
  RunOptions options;
  options.out_path = "/dev/null";
  const auto full = run_program(all, options);
  EXPECT_EQ(full.exit_code, 3) << full.err;
  EXPECT_NE(full.err.find("cannot be written"), std::string::npos) << full.err;
  const auto text = file_text(at("out"));
  EXPECT_GT(text.size(), 500u);
  EXPECT_LE(text.size(), 2048u);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(batch("in.jsonl", "out", {"--resume"}).exit_code, 0);
  EXPECT_EQ(essence(at("out")), essence(at("whole")));
}

TEST_F(Batch, AFullDiskIsWaitedFor) {
  write_lines(at("in.jsonl"), mixed_requests(60));
  ASSERT_EQ(batch("in.jsonl", "whole").exit_code, 0);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  rlimit small = old;
  small.rlim_cur = 2048;
  ::setrlimit(RLIMIT_FSIZE, &small);
  Background run(arguments("in.jsonl", "out", {"-q"}), at("err"));
  ::setrlimit(RLIMIT_FSIZE, &old);
  ASSERT_TRUE(wait_until([&] { return run.err().find("waiting for space") != std::string::npos; })) << run.err();
  EXPECT_EQ(file_text(at("out")).back(), '\n');
  ASSERT_EQ(::prlimit(run.id(), RLIMIT_FSIZE, &old, nullptr), 0);
  EXPECT_EQ(run.wait(), 0) << run.err();
  EXPECT_EQ(essence(at("out")), essence(at("whole")));
}

TEST_F(Batch, FullDevice) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  write_lines(at("in.jsonl"), {R"({"id":1,"prompt":"Hello","max_tokens":2})"});
  EXPECT_EQ(hk_run({"batch", demo_model(), at("in.jsonl"), "-o", "/dev/full"}).exit_code, 3);
}

class BatchSignals : public BatchTest {
 protected:
  /// Four requests that take a while, and many that wait.
  void SetUp() override {
    Lines lines;
    for (int i = 0; i < 50; ++i)
      lines.push_back(
          Json{{"id", i}, {"prompt", "Once upon a time"}, {"max_tokens", 1500}, {"ignore_eos", true}}.dump());
    write_lines(at("in.jsonl"), lines);
  }
  std::vector<std::string> four() { return arguments("in.jsonl", "out", {"--slots", "4", "-c", "4096"}); }
  bool runs(Background& run) {
    run.signal(SIGUSR1);  // before the handler is there it would end the program, so only once the output is
    return wait_until([&] { return run.err().find("4 running") != std::string::npos; });
  }
  bool opened() {
    const bool there = wait_until([&] { return std::filesystem::exists(at("out")); });
    ::usleep(300'000);
    return there;
  }
};

TEST_F(BatchSignals, TheFirstInterruptFinishesWhatRuns) {
  Background run(four(), at("err"));
  ASSERT_TRUE(opened() && runs(run)) << run.err();
  EXPECT_NE(run.err().find("tok/s"), std::string::npos);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(), 130);
  EXPECT_NE(run.err().find("finishing"), std::string::npos) << run.err();
  EXPECT_NE(run.err().find("--resume"), std::string::npos) << run.err();
  const auto answers = answers_in(at("out"));
  EXPECT_EQ(answers.size() % 4, 0u);
  EXPECT_GE(answers.size(), 4u);
  EXPECT_LT(answers.size(), 50u);
  for (const auto& answer : answers) EXPECT_EQ(answer["finish_reason"], "length");
}

TEST_F(BatchSignals, TheSecondStopsAtOnce) {
  Background run(four(), at("err"));
  ASSERT_TRUE(opened() && runs(run)) << run.err();
  run.signal(SIGINT);
  ASSERT_TRUE(wait_until([&] { return run.err().find("finishing") != std::string::npos; }));
  run.signal(SIGINT);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run.wait(), 130);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
  answers_in(at("out"));  // whole lines
}

TEST_F(BatchSignals, SoDoesTermination) {
  Background run(four(), at("err"));
  ASSERT_TRUE(opened() && runs(run)) << run.err();
  run.signal(SIGTERM);
  EXPECT_EQ(run.wait(), 130);
  answers_in(at("out"));
}

/// Most private memory while the program runs, in KiB.
std::size_t most_private_memory(Background& watched) {
  std::size_t most = 0;
  while (watched.running()) {
    const auto status = file_text("/proc/" + std::to_string(watched.id()) + "/status");
    // Until it begins, the child has the memory of this test.
    const bool begun = has(status.substr(0, status.find('\n')), "hk-run");
    if (const auto place = status.find("RssAnon:"); begun && place != std::string::npos)
      most = std::max<std::size_t>(most, std::stoul(status.substr(place + 8)));
    ::usleep(2000);
  }
  return most;
}

TEST_F(Batch, MemoryLimit) {
  // Long lines too: what is carried along waits in memory with its request.
  Lines lines = mixed_requests(60);
  for (int i = 0; i < 20; ++i)
    lines.push_back(
        Json{{"id", i}, {"prompt", "Hello"}, {"max_tokens", 2}, {"metadata", std::string(1 << 18, 'x')}}.dump());
  write_lines(at("in.jsonl"), lines);
  ASSERT_EQ(batch("in.jsonl", "whole").exit_code, 0);
  for (const std::size_t limit : {24, 32, 48, 64}) {
    for (const char* slots : {"2", "64"}) {
      Background run(arguments("in.jsonl", "out",
                               {"--mem-limit", std::to_string(limit) + "M", "--slots", slots, "--force", "--ordered"}),
                     at("err"));
      const auto most = most_private_memory(run);
      EXPECT_GT(most, 1000u);
      EXPECT_LE(most, limit * 1024) << slots << " slots: " << run.err();
      EXPECT_EQ(essence(at("out")), essence(at("whole")));
    }
  }
  const auto none = batch("in.jsonl", "out", {"--mem-limit", "64K", "--force"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("--mem-limit"), std::string::npos);
}

TEST_F(Batch, BadUsage) {
  write_lines(at("in.jsonl"), {R"({"id":1,"prompt":"Hello","max_tokens":2})"});
  const auto refused = [&](std::vector<std::string> arguments, const char* word) {
    arguments.insert(arguments.begin(), "batch");
    const auto run = hk_run(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find(word), std::string::npos) << run.err;
  };
  const std::string in = at("in.jsonl"), out = at("out");
  refused({}, "MODEL");
  refused({in, "-o", out}, "MODEL");
  refused({demo_model(), in}, "-o");
  refused({demo_model(), in, "-m", demo_model(), "-o", out}, "twice");
  refused({demo_model(), in, "-o", out, "--shard", "3/2"}, "--shard");
  refused({demo_model(), in, "-o", out, "--shard", "0/2"}, "--shard");
  refused({demo_model(), in, "-o", out, "--slots", "0"}, "--slots");
  refused({demo_model(), in, "-o", out, "-n", "-5"}, "-n");
  refused({demo_model(), in, "-o", out, "--system", "x"}, "--chat");
  refused({demo_model(), in, "-o", out, "--mem-limit", "lots"}, "--mem-limit");
  refused({demo_model(), in, "-o", "-", "--resume"}, "--resume");
  EXPECT_EQ(hk_run({"batch", demo_model(), at("nowhere"), "-o", out}).exit_code, 1);
  EXPECT_EQ(hk_run({"batch", demo_model(), folder.path(), "-o", at("out3")}).exit_code, 1);
}

}  // namespace
}  // namespace hk::test
