// What the tests of hk-run batch share: requests, answers, and a program that runs beside the test.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace hk::test {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

inline std::string demo_model() { return std::string(source_root()) + "/demo/hinoki.hk"; }

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Whole lines; `tail` takes what follows the last line end.
inline Lines lines_of(const std::string& text, std::string* tail = nullptr) {
  Lines lines;
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (tail != nullptr) *tail = text.substr(begin);
  return lines;
}

inline void write_lines(const std::filesystem::path& path, const Lines& lines) {
  std::ofstream out(path, std::ios::binary);
  for (const auto& line : lines) out << line << '\n';
}

inline std::vector<Json> answers_in(const std::filesystem::path& path) {
  std::string tail;
  std::vector<Json> answers;
  for (const auto& line : lines_of(file_text(path), &tail)) answers.push_back(Json::parse(line));
  EXPECT_EQ(tail, "") << "the last line is cut";
  return answers;
}

/// What must be the same whatever happened: everything but when and how fast. By id; an id that is there twice fails.
inline std::map<std::string, std::string> essence(const std::filesystem::path& path) {
  std::map<std::string, std::string> by_id;
  for (auto answer : answers_in(path)) {
    std::string id = answer.value("custom_id", Json()).is_null() ? answer["id"].dump() : answer["custom_id"].dump();
    if (id == "null") id = "line " + answer["line"].dump();
    answer.erase("timings");
    answer.erase("line");  // differs in a shuffled file
    if (answer.contains("response") && !answer["response"].is_null()) {
      answer = answer["response"]["body"]["choices"];
    }
    EXPECT_TRUE(by_id.emplace(id, answer.dump()).second) << id << " is answered twice";
  }
  return by_id;
}

/// 200 requests of all kinds, with shared beginnings.
inline Lines mixed_requests(std::size_t count = 200) {
  std::mt19937 random(11);
  const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  const char* countries[] = {"France", "Spain", "Italy", "Japan", "Norway", "Peru", "Kenya"};
  std::string shots;
  for (const char* country : countries)
    shots += std::string("Question: What is the capital of ") + country + "?\nAnswer: A city.\n";
  Lines lines;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string country = countries[pick(7)];
    Json request{{"id", "request-" + std::to_string(i)}, {"max_tokens", 1 + pick(60)}};
    switch (i % 8) {
      case 0:
      case 1:
        request["messages"] = {{{"role", "user"}, {"content", "What is the capital of " + country + "?"}}};
        break;
      case 2:
        request["messages"] = {{{"role", "system"}, {"content", "Be kind."}},
                               {{"role", "user"}, {"content", "Tell me a story about a " + country + " cat."}}};
        request["temperature"] = 1.2;
        break;
      case 3:
        request["prompt"] = shots + "Question: What is the capital of " + country + "?\nAnswer:";
        break;
      case 4:
        request["prompt"] = "Once upon a time";
        request["n"] = 1 + pick(4);
        request["repeat_penalty"] = 1.2;
        request["stop"] = Json::array({".", "\n"});
        break;
      case 5:
        request["tokens"] = Json::array({1 + pick(2000), 1 + pick(2000), 1 + pick(2000)});
        request["logprobs"] = 2;
        request["return_tokens"] = true;
        break;
      case 6:
        request = {{"id", request["id"]},
                   {"mode", "score"},
                   {"prompt", "The capital of " + country + " is"},
                   {"continuations", {" Paris.", " Madrid.", " a city."}}};
        break;
      default:
        request = {{"custom_id", request["id"]},
                   {"method", "POST"},
                   {"url", "/v1/chat/completions"},
                   {"body",
                    {{"model", "any"},
                     {"max_tokens", 20},
                     {"messages", {{{"role", "user"}, {"content", "Opposite of hot?"}}}}}}};
    }
    if (i % 5 == 0 && !request.contains("mode") && !request.contains("body")) request["temperature"] = 0;
    if (i % 9 == 0 && !request.contains("mode") && !request.contains("body")) request["seed"] = i;
    lines.push_back(request.dump());
  }
  return lines;
}

/// hk-run beside the test; killed when it is still there at the end.
class Background {
 public:
  Background(std::vector<std::string> arguments, std::filesystem::path err) : err_(std::move(err)) {
    arguments.insert(arguments.begin(), program());
    std::vector<char*> raw;
    for (auto& argument : arguments) raw.push_back(argument.data());
    raw.push_back(nullptr);
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("cannot fork");
    if (child_ > 0) return;
    const int null = ::open("/dev/null", O_RDWR);
    const int out = ::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (null < 0 || out < 0 || ::dup2(null, 0) < 0 || ::dup2(null, 1) < 0 || ::dup2(out, 2) < 0) ::_exit(126);
    ::execv(raw[0], raw.data());
    ::_exit(127);
  }
  ~Background() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    wait();
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  pid_t id() const { return child_; }
  void signal(int number) const { ::kill(child_, number); }
  /// Exit code, or 128 + signal.
  int wait() {
    int status = 0;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  bool running() {
    int status = 0;
    if (::waitpid(child_, &status, WNOHANG) == 0) return true;
    child_ = -1;
    return false;
  }
  std::string err() const { return file_text(err_); }

 private:
  std::filesystem::path err_;
  pid_t child_ = -1;
};

/// Looks until `ready` holds; false after a minute.
template <typename Ready>
bool wait_until(Ready ready) {
  for (int i = 0; i < 60'000; ++i) {
    if (ready()) return true;
    ::usleep(1000);
  }
  return false;
}

/// A folder with a request file, and hk-run batch over it.
class BatchTest : public testing::Test {
 protected:
  std::filesystem::path at(const std::string& name) const { return folder.path() / name; }
  std::vector<std::string> arguments(const std::string& in, const std::string& out, std::vector<std::string> more) {
    std::vector<std::string> all = {"batch", demo_model(), at(in), "-o", at(out)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome batch(const std::string& in, const std::string& out, std::vector<std::string> more = {}) {
    return hk_run(arguments(in, out, std::move(more)));
  }
  /// One request, one answer.
  Json ask(const Json& request, std::vector<std::string> more = {}) {
    write_lines(at("one.jsonl"), {request.dump()});
    more.push_back("--force");
    batch("one.jsonl", "one.out", std::move(more));
    const auto answers = answers_in(at("one.out"));
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? Json() : answers.front();
  }
  TemporaryFolder folder;
};

}  // namespace hk::test
